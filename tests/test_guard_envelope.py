"""The last gate: no answer that the schema allows leaves the envelope, whatever the state and the observation."""

from __future__ import annotations

import math
from itertools import product

import pytest
from guard_rig import Rig
from plant import PLANT, settings

from edgeguard.guard.envelope import admit
from edgeguard.guard.mapping import as_float32
from edgeguard.types import Action, Cause, Source

WIDE = PLANT.replace("maximum = 0.5", "maximum = 2.0")  # the model may ask for more than the axis allows
CLAMPED = WIDE.replace("rate_up = 1.0", 'rate_up = 1.0\non_violation = "clamp"\ngroup = "base"').replace(
    "rate_up = 4.0", 'rate_up = 4.0\ngroup = "base"'
)


def judge(text, targets, *, docked=False, clamp=False):
    plant = settings(text)
    rails = plant.guardrails if docked else ()
    return admit(plant.axes, tuple(map(as_float32, targets)), rails, clamp=clamp)


class TestVerdict:
    def test_within_range_nothing_is_changed(self):
        verdict = judge(PLANT, (0.5, 1.0, 0.1))
        assert verdict.targets == tuple(map(as_float32, (0.5, 1.0, 0.1)))
        assert (verdict.refusal, verdict.adjusted, verdict.pulled) == ("", (), frozenset())

    @pytest.mark.parametrize(
        "targets", [(0.6, 0, 0), (-0.3, 0, 0), (0, 1.1, 0), (0, 0, -0.1), (math.nan, 0, 0), (0, math.inf, 0)]
    )
    def test_out_of_range_is_refused(self, targets):
        assert judge(PLANT, targets).refusal

    def test_a_refusal_names_the_axis_the_value_and_the_bound(self):
        assert judge(PLANT, (0.6, 0, 0)).refusal == "linear = 0.6 is out of -0.2 to 0.5 (range)"
        assert judge(PLANT, (0.1, 0, 0), docked=True).refusal == "linear = 0.1 is out of -0.2 to 0 (interlock docked)"

    def test_an_interlock_that_leaves_the_whole_range_is_not_to_blame(self):
        text = PLANT.replace('axis = "linear"\nmax = 0.0', 'axis = "linear"\nmax = 0.5')
        assert judge(text, (0.6, 0, 0), docked=True).refusal == "linear = 0.6 is out of -0.2 to 0.5 (range)"

    def test_a_clamped_axis_takes_its_group_along(self):
        verdict = judge(CLAMPED, (1.0, 0.8, 0.1))
        assert verdict.targets == tuple(map(as_float32, (0.5, 0.4, 0.1)))
        assert verdict.pulled == {0, 1}
        assert verdict.adjusted == ("linear: 1 -> 0.5 (range)", "angular: 0.8 -> 0.4 (with its group)")

    def test_shares_are_of_the_distance_from_the_safe_value(self):
        text = CLAMPED.replace("max = 0.5\n", "max = 0.5\nsafe = 0.25\n").replace(
            "max = 1.0\n", "max = 1.0\nsafe = 0.5\n"
        )
        verdict = judge(text, (0.75, 1.0, 0.0))
        assert verdict.targets == tuple(map(as_float32, (0.5, 0.75, 0.0)))
        assert verdict.adjusted == ("linear: 0.75 -> 0.5 (range)", "angular: 1 -> 0.75 (with its group)")

    def test_an_interlock_that_stops_one_axis_stops_its_group(self):
        verdict = judge(CLAMPED, (0.4, 1.0, 0.1), docked=True)
        assert verdict.targets == (0.0, 0.0, as_float32(0.1))

    def test_the_smallest_share_counts(self):
        both = CLAMPED.replace("rate_up = 4.0", 'rate_up = 4.0\non_violation = "clamp"').replace(
            "left = 1.0", "left = 4.0"
        )
        verdict = judge(both, (1.0, 4.0, 0.0))
        assert verdict.targets == tuple(map(as_float32, (0.25, 1.0, 0.0)))

    def test_what_is_not_finite_is_refused_even_where_the_axis_clamps(self):
        assert judge(CLAMPED, (math.nan, 0, 0)).refusal
        assert judge(CLAMPED, (math.inf, 0, 0)).refusal

    def test_a_rules_motion_is_clamped_where_the_models_is_refused(self):
        assert judge(PLANT, (0.6, 0, 0), clamp=True).targets[0] == 0.5

    @pytest.mark.parametrize(("least", "refused"), [("0.02", False), ("0.05", True)])
    def test_interlocks_that_leave_nothing_to_an_axis_that_holds_refuse_its_motion(self, least, refused):
        rail = """
        [[interlock]]
        name = "{name}"
        when = {{ field = "docked", equals = true }}
        axis = "gripper"
        {bound}
        """
        text = PLANT + rail.format(name="a", bound="max = 0.02") + rail.format(name="b", bound=f"min = {least}")
        assert bool(judge(text, (0, 0, 0.03), docked=True, clamp=True).refusal) is refused

    def test_an_interlock_never_excludes_the_safe_value(self):
        text = PLANT.replace('axis = "linear"\nmax = 0.0', 'axis = "linear"\nmin = 0.1\nmax = 0.3')
        (rail,) = settings(text).guardrails
        assert rail.low <= 0 <= rail.high


GRID = [
    {"front_m": front_m, "docked": docked, "linear": linear}
    for front_m, docked, linear in product((0.1, 2.0, None), (True, False, None), (0.5, math.nan))
]


@pytest.mark.parametrize("text", [WIDE, CLAMPED], ids=["refuse", "clamp"])
@pytest.mark.parametrize("fields", GRID, ids=str)
def test_no_answer_of_the_schema_leaves_the_envelope(text, fields):
    """Prompt injection is assumed to succeed: every answer × a grid of observations, from rest and from top speed."""
    plant = settings(text)
    answers = [dict(zip(("speed", "turn", "grip"), values, strict=True)) for values in product(*plant.answer_fields)]
    assert len(answers) == 23 * 3 * 2
    starts = (Rig(plant), Rig(plant).arm())
    for start, values in product(starts, answers):
        rig = Rig(plant)
        rig.state, rig.now_ns, rig.effects, rig.measured = start.state, start.now_ns, start.effects, start.measured
        rig.observe(**fields)
        rig.advance(40)
        if rig.request is not None:
            rig.answer(values)
        rig.advance(60)
        for _, set_point in rig.sent:
            for axis in plant.axes:
                value = set_point.axes[axis.name]
                assert axis.low <= value <= axis.high
                assert value == as_float32(value)
            if set_point.action is Action.MOVE:
                assert fields["docked"] is False or set_point.axes["linear"] <= max(0.0, start.measured["linear"])
        if rig.state.engagement is not None and fields["docked"] is not False:
            assert rig.speeds[-1] < start.measured["linear"] or rig.speeds[-1] <= 0


class TestInTheGuard:
    def test_what_the_envelope_refuses_is_a_cause_and_the_next_answer_is_applied(self):
        rig = Rig(settings(WIDE)).arm()
        record = rig.cycle({"speed": 2, "turn": "left", "grip": False})
        assert record.decision.causes == (Cause.OUT_OF_ENVELOPE,)
        assert "linear = 2 is out of" in record.decision.detail
        assert rig.state.credit == 2
        assert rig.cycle().decision.source is Source.MODEL

    def test_what_it_did_is_in_the_record(self):
        rig = Rig(settings(CLAMPED)).arm()
        record = rig.cycle({"speed": 1, "turn": "left", "grip": False})
        assert record.decision.source is Source.MODEL
        assert record.decision.adjusted[:2] == (
            "linear: 1 -> 0.5 (range)",
            "angular: 1 -> 0.5 (with its group)",
        )

    def test_an_interlock_that_closes_under_the_command_in_force_is_a_stop(self):
        rig = Rig().arm()
        effects = rig.observe(docked=True)
        assert effects.record is None or effects.record.decision.causes == (Cause.OUT_OF_ENVELOPE,)
        assert Cause.OUT_OF_ENVELOPE in rig.causes

    def test_a_sensor_that_falls_silent_is_the_cause_and_not_the_model(self):
        rig = Rig().arm()
        rig.follows = False
        rig.advance(600)  # the interlock can no more be judged, so it binds
        assert rig.causes == {Cause.NO_OBSERVATION}
        assert rig.speeds[-1] < rig.speeds[-10]
        assert rig.state.counters.misses == 0

    def test_what_only_a_blind_interlock_refuses_is_neither_applied_nor_held_against_the_model(self):
        rig = Rig().arm()
        rig.cycle(latency_ms=199)
        assert not rig.observe().request.shadow
        credit = rig.state.credit
        rig.observe(docked=None)
        record = rig.answer().record
        assert set(record.decision.causes) == {Cause.MISS, Cause.MISSING_FIELD}
        assert record.decision.source is Source.SAFE
        assert (rig.state.credit, rig.state.counters.misses) == (credit, 1)

    def test_beside_a_blind_interlock_what_is_known_to_be_forbidden_is_still_held_against_it(self):
        rig = Rig(settings(WIDE)).arm()
        rig.cycle(latency_ms=199)
        rig.observe()
        rig.observe(docked=None)
        record = rig.answer({"speed": 2, "turn": "left", "grip": False}).record
        assert "linear = 2 is out of -0.2 to 0.5 (range)" in record.decision.detail

    def test_a_model_that_goes_on_asking_for_what_is_forbidden_is_not_armed_again(self):
        rig = Rig(settings(WIDE)).arm()
        forbidden = {"speed": 2, "turn": "left", "grip": False}
        records = [rig.cycle(forbidden) for _ in range(30)]
        assert rig.state.counters.trips == 1
        assert {record.decision.source for record in records} == {Source.SAFE}
        assert Cause.OUT_OF_ENVELOPE in records[-1].decision.causes
        assert [rig.cycle().shadow for _ in range(4)] == [True, True, True, False]

    def test_what_a_shadow_asks_for_costs_nothing(self):
        rig = Rig(settings(WIDE))
        for _ in range(5):
            rig.cycle({"speed": 2, "turn": "left", "grip": False})
        assert rig.causes == {Cause.UNPROVEN, Cause.OUT_OF_ENVELOPE}
        assert (rig.state.credit, rig.state.counters.misses) == (3, 0)

    def test_on_an_axis_that_clamps_it_pulls_the_motion_back_at_the_rate_of_a_stop(self):
        rig = Rig(settings(CLAMPED.replace("rate_up = 1.0", "rate_up = 1.0\nrate_down = 0.1"))).arm()
        before = rig.speeds[-1]
        rig.observe(docked=True)
        rig.advance(100)
        assert rig.speeds[-1] == pytest.approx(before - 0.1, abs=0.01)
