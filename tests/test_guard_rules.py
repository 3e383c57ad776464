"""Conditions in three values, hysteresis, and which rule acts."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from itertools import product

import pytest
from guard_rig import Rig
from hypothesis import given
from hypothesis import strategies as st
from plant import PLANT, settings

from edgeguard.config.condition import All, AnyOf, Compare, Equals, Not, OlderThan
from edgeguard.guard.rules import View, choose, engaged_rails, number, remember, truth
from edgeguard.guard.state import Sight
from edgeguard.types import Action, Cause, Mode, Observation

NOW_NS = 10_000_000_000
TIMEOUT_NS = 400_000_000

TRUE = Equals(field="yes", value=True)
FALSE = Equals(field="no", value=True)
UNKNOWN = Equals(field="gone", value=True)
OF = {True: TRUE, False: FALSE, None: UNKNOWN}


def view(*, age_ns=0, unusable=(), engaged=(), ages_ns=None, now_ns=NOW_NS, **fields) -> View:
    observation = Observation(
        fields={"yes": True, "no": False, **fields}, captured_ns=NOW_NS - age_ns, ages_ns=ages_ns or {}
    )
    sight = Sight(observation=observation, arrived_ns=NOW_NS, unusable=frozenset(unusable))
    return View(now_ns=now_ns, sight=sight, timeout_ns=TIMEOUT_NS, engaged=frozenset(engaged))


NO_SIGHT = View(now_ns=NOW_NS, sight=None, timeout_ns=TIMEOUT_NS)


@pytest.mark.parametrize("values", list(product((True, False, None), repeat=3)))
def test_all_any_and_not_follow_kleene(values):
    parts = tuple(OF[value] for value in values)
    seen = view()
    every = False if False in values else None if None in values else True
    some = True if True in values else None if None in values else False
    assert truth(All(parts=parts), seen) is every
    assert truth(AnyOf(parts=parts), seen) is some
    assert truth(Not(part=parts[0]), seen) is (None if values[0] is None else not values[0])


@pytest.mark.parametrize(
    ("value", "below", "above"),
    [
        (0.99, True, False),
        (1, False, False),
        (Decimal("1.01"), False, True),
        (None, None, None),
        (float("nan"), None, None),
        (float("inf"), None, None),
        (10**400, None, None),
        (Decimal("sNaN"), None, None),
        (True, None, None),
        ("1.5", None, None),
    ],
)
def test_a_comparison_of_what_is_no_finite_number_is_unknown(value, below, above):
    assert truth(Compare(field="x", below=1), view(x=value)) is below
    assert truth(Compare(field="x", above=1), view(x=value)) is above


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ("Go  on!", "go on", True),
        ("go", "stop", False),
        (True, True, True),
        (1, True, False),
        (True, 1, False),
        (Decimal("0.5"), 0.5, True),
        (2, 2.5, False),
        ("1", 1, None),
        (1, "1", None),
        (None, "go", None),
    ],
)
def test_equality_looks_past_case_and_punctuation_and_never_mixes_kinds(value, wanted, expected):
    assert truth(Equals(field="x", value=wanted), view(x=value)) is expected


def test_the_age_of_a_field_counts_its_own_and_the_observations():
    older = OlderThan(field="yes", age_ns=300)
    assert truth(older, view(age_ns=100, ages_ns={"yes": 200})) is False
    assert truth(older, view(age_ns=100, ages_ns={"yes": 201})) is True
    assert truth(older, view(age_ns=100, now_ns=NOW_NS + 201)) is True
    assert truth(older, view(unusable=["yes"], ages_ns={"yes": 301})) is True
    assert truth(OlderThan(field="gone", age_ns=1), view()) is None
    assert truth(older, NO_SIGHT) is None


def test_everything_is_unknown_without_an_observation_or_with_one_that_has_had_no_successor():
    assert truth(TRUE, NO_SIGHT) is None
    assert truth(TRUE, view(now_ns=NOW_NS + TIMEOUT_NS)) is True
    assert truth(TRUE, view(now_ns=NOW_NS + TIMEOUT_NS + 1)) is None
    assert truth(TRUE, view(unusable=["yes"])) is None


class TestHysteresis:
    near = Compare(field="x", below=0.4, until=0.6)
    far = Compare(field="x", above=3.0, until=2.0)

    def run(self, band, values):
        engaged, held = frozenset(), []
        for value in values:
            seen = view(x=value, engaged=engaged)
            held.append(truth(band, seen))
            engaged = remember((band,), seen)
        return held

    def test_a_band_holds_until_its_other_end_is_crossed(self):
        assert self.run(self.near, [0.5, 0.39, 0.5, 0.6, 0.61, 0.5]) == [False, True, True, True, False, False]
        assert self.run(self.far, [2.5, 3.1, 2.5, 2.0, 1.9, 2.5]) == [False, True, True, True, False, False]

    def test_an_unknown_value_neither_enters_nor_leaves_it(self):
        assert self.run(self.near, [0.3, None, 0.5]) == [True, None, True]
        assert self.run(self.near, [0.5, None, 0.5]) == [False, None, False]

    def test_the_guard_remembers_it_between_observations(self):
        rig = Rig().arm()
        modes = []
        for front_m in (0.6, 0.29, 0.4, 0.5, 0.51):
            rig.cycle(front_m=front_m)
            modes.append(rig.mode)
        stopped = Mode.INTERVENING
        assert modes == [Mode.ARMED, stopped, stopped, stopped, Mode.ARMED]


class TestChoice:
    motives = settings().motives

    def test_the_first_rule_that_acts_is_chosen(self):
        assert choose(self.motives, view(front_m=0.2, docked=True), may_move=True).name == "obstacle"
        assert choose(self.motives, view(front_m=2, docked=True), may_move=True).name == "creep away"
        assert choose(self.motives, view(front_m=2, docked=False), may_move=True).name == "stop"

    def test_unknown_selects_a_stop_and_never_a_motion(self):
        assert choose(self.motives, view(front_m=None, docked=True), may_move=True).name == "obstacle"
        assert choose(self.motives, view(front_m=2, docked=None), may_move=True).name == "stop"
        assert choose(self.motives, NO_SIGHT, may_move=True).name == "obstacle"

    def test_a_rule_that_may_not_move_is_passed_over(self):
        assert choose(self.motives, view(front_m=2, docked=True), may_move=False).name == "stop"

    def test_an_interlock_binds_while_its_condition_is_not_known_to_be_false(self):
        rails = settings().guardrails
        assert engaged_rails(rails, view(docked=True)) == list(rails)
        assert engaged_rails(rails, view(docked=None)) == list(rails)
        assert engaged_rails(rails, view(docked=False)) == []


class TestInTheGuard:
    def intervening(self, *, plant=None, **fields) -> Rig:
        rig = Rig(plant).arm()
        rig.conditions = ((Cause.DRIFT_ALARM, "slower"),)
        for _ in range(4):
            rig.cycle({"speed": 0, "turn": "left", "grip": False}, **fields)
        return rig

    def test_a_rule_moves_while_intervening_and_its_life_is_its_observations(self):
        rig = self.intervening(docked=True)
        at, moving = rig.sent[-1]
        assert (moving.action, rig.state.rule) == (Action.MOVE, "creep away")
        assert moving.axes["linear"] == pytest.approx(-0.1)
        assert moving.axes["angular"] == 0
        assert rig.records[-1].decision.rule == "creep away"
        assert at + moving.life_ms * 1_000_000 <= rig.records[-1].observation.captured_ns + rig.settings.life_ns
        assert rig.named("rule") == ["creep away"]

    def test_the_first_rule_that_acts_wins_and_a_later_ones_grade_does_not_forbid_it_to_move(self):
        creep = PLANT[PLANT.index('[[rule]]\nname = "creep away"') : PLANT.index('[[rule]]\nname = "stop"')]
        text = PLANT.replace(creep, "").replace('[[rule]]\nname = "obstacle"', creep + '[[rule]]\nname = "obstacle"')
        rig = Rig(settings(text)).arm()
        for _ in range(4):
            rig.cycle(docked=True, front_m=0.1)
        assert rig.causes == {Cause.RULE, Cause.OUT_OF_ENVELOPE}  # the model would go on
        assert (rig.sent[-1][1].action, rig.state.rule) == (Action.MOVE, "creep away")

    def test_it_stops_when_its_observation_has_no_successor(self):
        rig = self.intervening(docked=True)
        rig.advance(300)
        assert rig.sent[-1][1].action is Action.STOP
        assert rig.state.rule == "obstacle"  # unknown, so the stop
        assert rig.named("rule") == ["creep away", "obstacle (its condition is unknown)"]

    @pytest.mark.parametrize(("left_ns", "action"), [(1_000_000, Action.MOVE), (999_999, Action.STOP)])
    def test_its_last_frame_lives_for_a_millisecond(self, left_ns, action):
        patient = settings(PLANT + "[timing]\nobservation_timeout_ms = 2000\n")
        rig = self.intervening(plant=patient, docked=True)
        rig.follows = False
        life_end_ns = rig.state.sight.observation.captured_ns + patient.life_ns - patient.wire_ns
        rig.advance((life_end_ns - rig.now_ns) // 1_000_000 - 15)
        rig.now_ns = life_end_ns - left_ns
        rig.conditions += ((Cause.LEVEL_UNCALIBRATED, "hot"),)
        rig.state = dataclasses.replace(rig.state, next_tick_ns=rig.now_ns)
        rig.step()
        assert rig.sent[-1][1].action is action

    @pytest.mark.parametrize("field", ["front_m", "docked"])
    def test_it_stops_when_an_input_is_missing(self, field):
        rig = self.intervening(docked=True)
        rig.observe(**{"docked": True, field: None})
        assert rig.sent[-1][1].action is Action.STOP

    def test_it_does_not_move_against_an_emergency(self):
        rig = self.intervening(docked=True)
        rig.conditions += ((Cause.SESSION_MISMATCH, "x"),)
        rig.step()
        rig.advance(20)
        assert rig.sent[-1][1].action is Action.STOP

    def test_it_moves_neither_before_the_proof_nor_when_latched(self):
        rig = Rig()
        rig.cycle(docked=True)
        assert {one.action for _, one in rig.sent} == {Action.STOP}

    def test_a_rule_that_is_always_checked_takes_over_and_hands_back(self):
        rig = Rig().arm()
        record = rig.cycle(front_m=0.1)
        assert record.decision.causes == (Cause.RULE,)
        assert record.decision.detail == "rule: obstacle"
        assert rig.records[-1].decision.rule == "obstacle"
        assert rig.state.grade.name == "EMERGENCY"
        rig.cycle(front_m=2)
        assert rig.mode is Mode.ARMED

    def test_the_obstacle_stops_at_the_observation_and_not_at_the_answer(self):
        rig = Rig().arm()
        effects = rig.observe(front_m=0.1)
        assert effects.send.action is Action.STOP

    def test_a_moving_rule_may_take_over_too(self):
        moving = settings(
            """
            [prompt]
            user = "x"
            [answer.schema]
            type = "object"
            properties = { speed = { type = "integer", minimum = 0, maximum = 1 } }
            [[field]]
            name = "behind_m"
            [[axis]]
            name = "linear"
            source = { field = "speed" }
            min = -1
            max = 1
            rate_up = 10
            [[rule]]
            name = "make way"
            when = { field = "behind_m", below = 0.5 }
            axes = { linear = 0.5 }
            grade = "emergency"
            always = true
            [[rule]]
            name = "stop"
            """
        )
        rig = Rig(moving)
        while rig.mode is not Mode.ARMED:
            rig.cycle({"speed": 0}, behind_m=2)
        rig.cycle({"speed": 0}, behind_m=0.4)
        assert rig.mode is Mode.INTERVENING
        assert rig.speeds[-1] == 0.5


@given(st.one_of(st.floats(), st.integers(), st.decimals(allow_nan=True), st.text(), st.booleans(), st.none()))
def test_evaluation_is_total(value):
    seen = view(x=value)
    for condition in (Compare(field="x", below=0), Equals(field="x", value=1), Equals(field="x", value="a")):
        assert truth(condition, seen) in (True, False, None)
    assert number(value) is None or isinstance(number(value), float)
