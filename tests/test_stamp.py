"""An observation has a monotonic time of capture; stamps of other clocks are refused with the conversion."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from edgeguard.channel import PEER_LIMIT_BYTES
from edgeguard.clock import NS_PER_MS, NS_PER_S, FakeClock
from edgeguard.errors import ObservationError
from edgeguard.runtime.stamp import observe

NOW_NS = 7_200 * NS_PER_S
WALL_NS = 1_796_000_000 * NS_PER_S


def test_without_a_stamp_it_was_captured_now():
    assert observe({"a": 1}, now_ns=NOW_NS).captured_ns == NOW_NS


def test_an_age_is_taken_off():
    observation = observe({"a": 1}, now_ns=NOW_NS, age_ms=12.5, field_ages_ms={"a": 30})
    assert observation.captured_ns == NOW_NS - 12_500_000
    assert observation.age_ns(NOW_NS, "a") == 42_500_000


@pytest.mark.parametrize(
    ("stamp", "said"),
    [
        (WALL_NS, "another clock's stamp"),
        (NOW_NS + 2 * NS_PER_MS, "in the future"),
        (NOW_NS - 3_601 * NS_PER_S, "another clock's stamp"),
        (0, "never taken for now"),
        (-5, "never taken for now"),
        (1.5, "not an integer"),
        (True, "not an integer"),
    ],
)
def test_a_stamp_of_another_clock_is_refused_and_the_message_names_the_conversion(stamp, said):
    with pytest.raises(ObservationError, match=said) as caught:
        observe({}, now_ns=NOW_NS, captured_ns=stamp)
    assert "age_ms" in str(caught.value)
    assert "time.monotonic_ns()" in str(caught.value)


@pytest.mark.parametrize("age_ms", [3_600_001, 86_400_000, math.inf])
def test_an_order_of_yesterday_is_too_old_for_any_field_and_no_fault_of_the_callers(age_ms):
    observation = observe({"said": "go"}, now_ns=NOW_NS, field_ages_ms={"said": age_ms})
    assert observation.age_ns(NOW_NS, "said") == 3_600 * NS_PER_S + 1


@pytest.mark.parametrize("age", [-1, math.nan])
def test_an_impossible_age_of_a_field_is_refused(age):
    with pytest.raises(ObservationError, match=r"field_ages_ms\['said'\] = .* is not an age"):
        observe({"said": "go"}, now_ns=NOW_NS, field_ages_ms={"said": age})


@pytest.mark.parametrize("age", [-1, math.nan, math.inf, 3_600_001])
def test_an_impossible_age_is_refused(age):
    with pytest.raises(ObservationError, match="not an age"):
        observe({}, now_ns=NOW_NS, age_ms=age)


def test_an_observation_has_one_time_of_capture():
    with pytest.raises(ObservationError, match="both given"):
        observe({}, now_ns=NOW_NS, age_ms=1, captured_ns=5)


@pytest.mark.parametrize(
    ("reading", "becomes"), [(np.float32(0.5), 0.5), (np.float64(0.1), 0.1), (np.int64(-3), -3), (Fraction(1, 4), 0.25)]
)
def test_numbers_of_other_libraries_become_pythons(reading, becomes):
    value = observe({"front_m": reading}, now_ns=NOW_NS).fields["front_m"]
    assert value == becomes
    assert isinstance(value, type(becomes))


@pytest.mark.parametrize("reading", [np.zeros(3), [1.0], {"a": 1}, b"go", object(), np.bool_(True)])
def test_what_no_field_holds_is_refused_by_name(reading):
    with pytest.raises(ObservationError, match=r"front_m is a .*a text, a number, True or False"):
        observe({"front_m": reading}, now_ns=NOW_NS)


def test_an_observation_beyond_what_the_guard_takes_is_refused_and_its_longest_field_named():
    with pytest.raises(ObservationError, match=f"at most {PEER_LIMIT_BYTES} are taken, and said is its longest"):
        observe({"front_m": 1.0, "said": "x" * PEER_LIMIT_BYTES}, now_ns=NOW_NS)


def test_the_fake_clock_moves_only_when_told_and_shows_a_suspend():
    clock = FakeClock(start_ns=10)
    clock.advance_ns(5)
    clock.sleep_until_ns(12)
    clock.suspend_ns(100)
    assert (clock.now_ns(), clock.boottime_ns()) == (15, 115)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance_ns(-1)
