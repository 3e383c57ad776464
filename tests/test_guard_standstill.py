"""What proves standstill where no echo says it: what is measured, or stops that were sent for long enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from guard_rig import Rig
from plant import PLANT, WIRE_NS, plant, settings

from edgeguard.guard.rules import View
from edgeguard.guard.standstill import REST_SHARE, standstill_proof, standstill_shown
from edgeguard.guard.stopping import REST_MARGIN, rest_assumed_ns
from edgeguard.types import Action, Cause, Echo, Mode
from edgeguard.types.wire import Feedback, LinkState, MotorFlag

MS = 1_000_000
BLIND = PLANT.replace('measured = "linear"\n', "")
RANGE = 0.7
"""Of the linear axis, from -0.2 to 0.5."""


def rig(feedback: Feedback, text: str = PLANT) -> Rig:
    rig = Rig(settings(text))
    rig.feedback = feedback
    rig.echoes = feedback is not Feedback.NONE
    return rig


def proven(rig: Rig, cycles: int = 6) -> Rig:
    for _ in range(cycles):
        rig.cycle()
    return rig


class TestMeasured:
    def test_what_the_axes_do_shows_standstill(self):
        assert proven(rig(Feedback.MEASURED)).mode is Mode.ARMED

    @pytest.mark.parametrize(("share", "rests"), [(0.99, True), (1.01, False), (-0.99, True), (-1.01, False)])
    def test_a_share_of_the_range_is_still_rest(self, share, rests):
        creeping = rig(Feedback.MEASURED)
        creeping.follows = False
        creeping.measured["linear"] = share * REST_SHARE * RANGE
        assert (proven(creeping).mode is Mode.ARMED) is rests
        assert (Cause.NO_ECHO in creeping.causes) is not rests

    def test_and_that_share_itself_is(self):
        turning = rig(Feedback.MEASURED)
        turning.follows = False
        turning.measured["angular"] = REST_SHARE * 2.0  # of a range that a float says exactly
        assert proven(turning).mode is Mode.ARMED

    def test_where_an_axis_that_holds_is_does_not_matter(self):
        holding = rig(Feedback.MEASURED)
        holding.measured["gripper"] = 0.05
        assert proven(holding).mode is Mode.ARMED

    def test_silence_is_a_cause_and_stops_still_go_out(self):
        silent = proven(rig(Feedback.MEASURED))
        silent.echoes = False
        silent.advance(600)
        assert Cause.NO_ECHO in silent.causes
        assert silent.sent[-1][1].action is Action.STOP
        assert not silent.state.at_rest

    def test_a_robot_that_is_measured_to_move_is_not_idle(self):
        rolling = rig(Feedback.MEASURED).arm()
        rolling.follows = False
        rolling.advance(2_000)
        assert Cause.NO_OBSERVATION in rolling.causes

    def test_a_fault_in_the_feedback_is_one(self):
        faulty = proven(rig(Feedback.MEASURED))
        faulty.flags = MotorFlag.FAULT
        faulty.advance(40)
        assert Cause.CONTROLLER_FAULT in faulty.causes


class TestNothing:
    def test_stops_for_the_computed_time_are_assumed_to_be_standstill(self):
        blind = rig(Feedback.NONE, BLIND)
        assumed_ns = blind.settings.rest_assumed_ns
        began_ns = blind.now_ns
        proven(blind, cycles=3)
        while blind.now_ns - began_ns < assumed_ns - 200 * MS:
            assert blind.causes == {Cause.NO_ECHO}
            assert blind.state.detail.startswith("nobody measures it: standstill is assumed ")
            blind.cycle()
        assert Action.MOVE not in {one.action for _, one in blind.sent}
        for _ in range(3):
            blind.cycle()
        assert blind.mode is Mode.ARMED

    @pytest.mark.parametrize(("offset_ns", "at_rest"), [(-1, False), (0, True)])
    def test_standstill_is_assumed_once_the_time_is_up(self, offset_ns, at_rest):
        blind = rig(Feedback.NONE, BLIND)
        blind.step()
        blind.now_ns = blind.state.session_since_ns + blind.settings.rest_assumed_ns + offset_ns
        blind.step()
        assert blind.state.at_rest is at_rest

    def test_another_session_begins_the_time_anew(self):
        blind = proven(rig(Feedback.NONE, BLIND), cycles=12)
        assert blind.mode is Mode.ARMED
        blind.link = LinkState.LOST
        blind.advance(100)
        blind.link, blind.generation = LinkState.UP, 2
        blind.cycle()
        assert blind.mode is Mode.INHIBITED
        assert blind.causes == {Cause.NO_ECHO}

    def test_an_observation_that_shows_motion_is_believed_more_than_the_time(self):
        seen = rig(Feedback.NONE)
        seen.follows = False
        seen.measured["linear"] = 0.3
        assert Cause.NO_ECHO in proven(seen, cycles=20).causes
        seen.measured["linear"] = 0.0
        proven(seen, cycles=20)
        assert seen.mode is Mode.ARMED

    def test_a_clock_that_went_back_begins_the_time_anew(self):
        blind = rig(Feedback.NONE, BLIND)
        blind.advance(100)
        blind.now_ns -= 50 * MS
        blind.step()
        assert blind.state.session_since_ns == blind.now_ns


@pytest.mark.parametrize(("value", "shown"), [(0.4, True), (0.0, False), (-0.4, False)])
def test_an_axis_rests_at_its_safe_value_wherever_that_is(value, shown):
    axes = (replace(settings().axes[0], safe=0.4),)
    echo = Echo(session=1, sequence=0, flags=MotorFlag(0), life_ms=0, axes={axes[0].name: value}, controller_ms=0)
    nothing_seen = View(now_ns=1, sight=None, timeout_ns=1)
    assert standstill_shown(axes, Feedback.MEASURED, echo, nothing_seen) is shown


def test_the_time_is_that_of_the_slowest_axis_from_top_speed_with_a_margin():
    link_ns = (80 + 5) * MS + WIRE_NS
    assert rest_assumed_ns(plant(), wire_ns=WIRE_NS) == link_ns + round(REST_MARGIN * 0.5 * 1e9)  # its own deceleration
    slower = plant(
        PLANT.replace("[link.controller_decel]\nlinear = 1.0", "[link]\ntimeout_ms = 80").replace("clearance = 1.0", "")
    )
    assert rest_assumed_ns(slower, wire_ns=WIRE_NS) == link_ns + round(REST_MARGIN * 0.5 * 1e9)  # the comfortable one
    slower = plant(PLANT.replace("rate_up = 4.0", "rate_up = 0.5"))
    assert rest_assumed_ns(slower, wire_ns=WIRE_NS) == link_ns + round(REST_MARGIN * 2.0 * 1e9)
    holding = replace(plant(), axes=tuple(axis for axis in plant().axes if axis.safe is None))
    assert rest_assumed_ns(holding, wire_ns=WIRE_NS) == link_ns


@pytest.mark.parametrize(
    ("feedback", "text", "says"),
    [
        (Feedback.ECHO, PLANT, "Standstill is what its echo says."),
        (Feedback.MEASURED, PLANT, "Standstill is what its feedback measures."),
        (Feedback.NONE, PLANT, "Standstill of angular is assumed, not seen, 800 ms after the first stop"),
        (Feedback.NONE, BLIND, "Standstill of linear, angular is assumed, not seen, 800 ms after"),
        (
            Feedback.NONE,
            PLANT.replace("rate_up = 4.0", 'rate_up = 4.0\nmeasured = "linear"'),
            "Standstill is what the observation measures.",
        ),
    ],
)
def test_the_rule_is_said_in_words(feedback, text, says):
    assert standstill_proof(plant(text), feedback, rest_assumed_ms=800).startswith(says)
