"""What an observation is worth when it arrives."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from guard_rig import Rig
from hypothesis import given
from hypothesis import strategies as st
from plant import settings

from edgeguard.guard.sensing import causes_of, examine, stop_word
from edgeguard.guard.words import normalise
from edgeguard.types import Cause, Mode, Observation

NOW_NS = 10_000_000_000
MS = 1_000_000
PLANT = settings()
GOOD = {"said": "go", "front_m": 2.0, "linear": 0.1, "docked": False}


def findings(*, age_ms=0.0, ages_ms=None, **fields):
    observation = Observation(
        fields={**GOOD, **fields},
        captured_ns=NOW_NS - round(age_ms * MS),
        ages_ns={name: round(age * MS) for name, age in (ages_ms or {}).items()},
    )
    return causes_of(examine(observation, settings=PLANT, now_ns=NOW_NS))


def test_a_good_observation_has_nothing_against_it():
    assert findings() == {}
    assert findings(front_m=Decimal("0.5"), unheard_of=7) == {}
    assert findings(said="x" * 80) == {}


@pytest.mark.parametrize("captured_ns", [0, -1, NOW_NS + 1, 10**30, math.nan, None])
def test_a_stamp_is_never_repaired(captured_ns):
    observation = Observation(fields=GOOD, captured_ns=captured_ns)
    assert causes_of(examine(observation, settings=PLANT, now_ns=NOW_NS)).keys() == {Cause.BAD_STAMP}


@pytest.mark.parametrize(("age_ms", "stale"), [(100, False), (100.000001, True), (9_000, True)])
def test_an_observation_older_than_max_age_is_stale(age_ms, stale):
    assert (Cause.STALE_OBSERVATION in findings(age_ms=age_ms)) is stale


@pytest.mark.parametrize(("older_ms", "stale"), [(110, False), (110.000001, True)])
def test_a_field_has_its_own_limit_and_is_named(older_ms, stale):
    found = findings(age_ms=40, ages_ms={"front_m": older_ms})
    assert (Cause.STALE_OBSERVATION in found) is stale
    assert not stale or "front_m is 150.0 ms old, its max_age_ms is 150" in found[Cause.STALE_OBSERVATION]


def test_a_field_without_a_limit_has_the_observations():
    assert Cause.STALE_OBSERVATION in findings(age_ms=40, ages_ms={"linear": 61})


def test_no_field_is_younger_than_its_observation():
    assert findings(ages_ms={"linear": -0.000001}).keys() == {Cause.BAD_STAMP}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"front_m": None}, "front_m has no reading"),
        ({"front_m": math.nan}, "front_m is no finite number (nan)"),
        ({"front_m": math.inf}, "front_m is no finite number (inf)"),
        ({"front_m": 10**5000}, "front_m is no finite number (int)"),
        ({"front_m": True}, "front_m is no finite number (bool)"),
        ({"front_m": "2"}, "front_m is no finite number (str)"),
        ({"front_m": -0.1}, "front_m = -0.1 is out of its range"),
        ({"front_m": 10.5}, "front_m = 10.5 is out of its range"),
        ({"docked": 0}, "docked is int, not true or false"),
        ({"said": 7}, "said is int, not a text"),
        ({"said": "x" * 81}, "said has 81 characters, max_chars is 80"),
        ({"said": None, "docked": None}, "said has no reading, docked has no reading"),
    ],
)
def test_a_reading_that_is_none_is_a_missing_field_and_named(fields, says):
    assert findings(**fields) == {Cause.MISSING_FIELD: says}


def test_one_observation_may_have_several_things_wrong():
    found = findings(front_m=None, ages_ms={"linear": 500})
    assert found.keys() == {Cause.MISSING_FIELD, Cause.STALE_OBSERVATION}


def test_only_the_field_that_failed_is_taken_from_the_rules():
    rig = Rig().arm()
    rig.observe(linear=None)
    assert rig.state.sight.unusable == {"linear"}
    rig.advance(200)
    rig.observe(age_ms=500)
    assert rig.state.sight is None


def test_a_good_observation_ends_what_the_bad_one_began():
    rig = Rig().arm()
    rig.cycle(front_m=None)
    assert rig.mode is Mode.INTERVENING
    rig.cycle()
    assert rig.mode is Mode.ARMED


@pytest.mark.parametrize(
    ("said", "heard"),
    [("Stop.", True), ("  HALT ", True), ("stop it", False), ("", False), (7, False), (None, False)],
)
def test_the_stop_word_is_the_whole_of_what_was_said(said, heard):
    observation = Observation(fields={"said": said}, captured_ns=0)
    assert (stop_word(observation, settings=PLANT) is not None) is heard


@given(st.text())
def test_normalising_is_idempotent_and_ignores_case_and_punctuation(text):
    once = normalise(text)
    assert normalise(once) == once
    assert normalise(f"  {once}!? ") == once
