"""From a decision to set-points: where a motion starts from, how it ends, and what the frame says."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from guard_rig import FAST, Rig
from plant import PLANT, settings

from edgeguard.clock import NS_PER_MS
from edgeguard.types import Action, Cause, Grade, Mode, OperatorWord
from edgeguard.types.wire import LinkState

MS = NS_PER_MS


def stopping(rig: Rig) -> Rig:
    rig.step(operator=(OperatorWord.STOP,))
    return rig


class TestStop:
    def test_it_starts_from_what_the_motor_controller_measures(self):
        rig = Rig().arm()
        rig.follows = False
        rig.measured["linear"] = 0.3
        rig.advance(10)
        stopping(rig)
        assert rig.speeds[-1] == pytest.approx(0.3, abs=0.01)

    @pytest.mark.parametrize("echoed", [None, math.nan, math.inf])
    def test_else_from_the_field_that_measures_the_axis(self, echoed):
        rig = Rig().arm()
        rig.observe(linear=0.2)
        rig.measured["linear"] = echoed
        stopping(rig)
        assert rig.speeds[-1] == pytest.approx(0.2, abs=0.01)

    def test_else_from_what_was_commanded_last(self):
        rig = Rig().arm()
        rig.echoes = False
        rig.advance(90)  # the echo is older than the link time-out, and so is no measurement
        rig.observe(linear=None)
        assert rig.speeds[-1] == pytest.approx(0.5, abs=0.01)
        assert rig.causes == {Cause.MISSING_FIELD}

    def test_a_measurement_of_the_other_sign_starts_no_reverse(self):
        rig = Rig().arm()
        rig.measured["linear"] = -0.9
        stopping(rig)
        assert rig.speeds[-1] == 0

    def test_it_decelerates_within_its_limits_to_standstill(self):
        rig = Rig().arm()
        rig.follows = False
        rig.advance(10)
        stopping(rig)
        rig.advance(790)
        track = [(at, one.axes["linear"]) for at, one in rig.sent if at >= rig.now_ns - 800 * MS]
        decels = [(v0 - v1) / ((t1 - t0) / 1e9) for (t0, v0), (t1, v1) in pairwise(track)]
        assert track[-1][1] == 0
        assert max(decels) <= 2.0 + 1e-5
        assert max(decels) > 1.5
        assert all(abs(d1 - d0) <= 20 * 0.02 + 1e-3 for d0, d1 in pairwise(decels))

    def test_a_worse_cause_makes_it_harder_on_the_way(self):
        rig = Rig().arm()
        rig.conditions = ((Cause.DRIFT_ALARM, "slower"),)
        rig.step()
        rig.advance(200)
        comfortable = rig.speeds[-2] - rig.speeds[-1]
        stopping(rig)
        rig.advance(60)
        assert rig.speeds[-2] - rig.speeds[-1] > comfortable

    def test_reverse_is_stopped_too(self):
        rig = Rig().arm()
        for _ in range(6):
            rig.cycle({"speed": 0, "turn": "right", "grip": False})
        assert rig.sent[-1][1].axes["angular"] == -1.0
        stopping(rig)
        rig.advance(400)
        turns = [one.axes["angular"] for at, one in rig.sent if at >= rig.now_ns - 400 * MS]
        assert turns == sorted(turns)
        assert turns[-1] == 0

    @pytest.mark.parametrize("action", ["hold", "torque_off"])
    def test_the_plant_names_the_action_and_the_set_points_ramp_beside_it(self, action):
        rig = Rig(settings(PLANT + f'[guard.actions]\nemergency = "{action}"\n')).arm()
        stopping(rig)
        assert rig.sent[-1][1].action is Action(action)
        rig.advance(600)
        assert rig.speeds[-1] == 0

    def test_a_gripper_keeps_its_command_whatever_it_measures(self):
        rig = Rig().arm()
        for _ in range(3):
            rig.cycle({**FAST, "grip": True})
        rig.follows = False
        rig.measured["gripper"] = 0.04  # it holds a thing
        stopping(rig)
        rig.advance(200)
        assert rig.sent[-1][1].axes["gripper"] == pytest.approx(0.1)


class TestSilence:
    """After more than the link time-out without a frame the motor controller has begun a stop of its own."""

    @pytest.mark.parametrize(("silent_ms", "stands"), [(80, False), (80.001, True), (300, True)])
    @pytest.mark.parametrize("suspended", [False, True])
    def test_a_stop_behind_one_starts_from_rest(self, silent_ms, stands, suspended):
        rig = Rig().arm()
        rig.follows = False
        since_ns = rig.sent[-1][0]
        if suspended:
            rig.offset_ns += round(silent_ms * MS) - (rig.now_ns - since_ns)
        else:
            rig.now_ns = since_ns + round(silent_ms * MS)
        stopping(rig)
        assert (rig.speeds[-1] == 0) is stands

    def test_what_holds_keeps_its_place(self):
        rig = Rig().arm()
        for _ in range(3):
            rig.cycle({**FAST, "grip": True})
        gripped = rig.sent[-1][1].axes["gripper"]
        rig.now_ns += 300 * MS
        stopping(rig)
        assert rig.sent[-1][1].axes["gripper"] == gripped > 0


class TestHeldPlaces:
    def test_what_nobody_knows_is_held_and_not_moved(self):
        rig = Rig()
        rig.measured["gripper"] = None
        rig.follows = False
        rig.advance(40)
        assert {one.action for _, one in rig.sent} == {Action.HOLD}
        assert {one.axes["gripper"] for _, one in rig.sent} == {0.0}
        rig.measured["gripper"] = 0.07
        rig.advance(40)
        assert rig.sent[-1][1].action is Action.STOP
        assert rig.sent[-1][1].axes["gripper"] == pytest.approx(0.07)

    def test_an_actuator_without_a_sensor_is_known_by_its_first_command(self):
        rig = Rig()
        rig.follows = False
        rig.measured["gripper"] = None
        while rig.mode is not Mode.ARMED:
            rig.cycle()
        rig.cycle({**FAST, "speed": 0, "grip": True})
        assert rig.sent[-1][1].action is Action.MOVE
        assert rig.sent[-1][1].axes["gripper"] == pytest.approx(0.1)
        stopping(rig)
        assert rig.sent[-1][1].action is Action.STOP

    def test_a_new_session_measures_them_anew(self):
        rig = Rig().arm()
        rig.link = LinkState.LOST
        rig.advance(40)
        rig.link, rig.generation, rig.follows = LinkState.UP, 2, False
        rig.measured = {"linear": 0.0, "angular": 0.0, "gripper": 0.05}
        rig.step()
        assert rig.sent[-1][1].axes["gripper"] == pytest.approx(0.05)

    def test_a_session_before_the_first_set_point_has_nothing_to_forget(self):
        rig = Rig()
        rig.step()
        assert rig.state.motion is not None


class TestReturn:
    def test_it_starts_from_what_is_measured_and_old_targets_are_dropped(self):
        rig = Rig().arm()
        rig.cycle(latency_ms=199)
        rig.follows = False
        rig.measured["linear"] = 0.1
        rig.observe()
        rig.advance(50)
        rig.answer()
        assert 0.1 <= rig.speeds[-1] <= 0.1 + 1.0 * 0.02 + 1e-6

    def test_a_gap_between_two_calls_counts_as_one_tick(self):
        rig = Rig()
        while rig.mode is not Mode.ARMED:
            rig.cycle()
        rig.cycle()
        before = rig.speeds[-1]
        rig.observe()
        rig.now_ns += 39 * MS  # late, but no overrun of more than a tick
        rig.step()
        assert rig.speeds[-1] - before <= 1.0 * 0.02 + 1e-6

    def test_while_it_follows_it_goes_on_from_its_own_set_points_not_from_a_plant_that_lags(self):
        rig = Rig()
        while rig.mode is not Mode.ARMED:
            rig.cycle()
        rig.follows = False
        rig.cycle()
        rig.cycle()
        assert rig.measured["linear"] == 0
        assert max(rig.speeds) > 0.2

    def test_the_record_says_what_the_rates_have_not_yet_let_through(self):
        rig = Rig()
        while rig.mode is not Mode.ARMED:
            rig.cycle()
        assert rig.cycle(latency_ms=110).decision.adjusted == ("linear: 0.5 -> 0.01 (rate)",)
        for _ in range(3):
            last = rig.cycle()
        assert last.decision.adjusted == ()


class TestRule:
    def test_a_motion_that_contradicting_interlocks_leave_nothing_to_is_a_stop(self):
        rails = "".join(
            f'[[interlock]]\nname = "{name}"\nwhen = {{ field = "docked", equals = true }}\naxis = "gripper"\n{bound}\n'
            for name, bound in (("a", "max = 0.02"), ("b", "min = 0.05"))
        )
        text = PLANT.replace("axes = { linear = -0.1 }", "axes = { gripper = 0.03 }") + rails
        rig = Rig(settings(text)).arm()
        rig.conditions = ((Cause.DRIFT_ALARM, "slower"),)
        rig.cycle({"speed": 0, "turn": "straight", "grip": False}, docked=True)
        assert rig.state.rule == "creep away"
        assert rig.sent[-1][1].action is Action.STOP


class TestStatus:
    def test_the_state_says_what_holds_the_worst_first(self):
        rig = Rig()
        rig.conditions = ((Cause.SESSION_MISMATCH, "of another"),)
        rig.step()
        assert rig.state.causes == (Cause.SESSION_MISMATCH, Cause.UNPROVEN)
        assert rig.state.detail == "of another"
        assert rig.state.grade is Grade.EMERGENCY

    def test_an_armed_guard_has_nothing_to_say(self):
        rig = Rig().arm()
        assert (rig.state.causes, rig.state.detail, rig.state.grade) == ((), "", Grade.NONE)

    def test_says_what_keeps_it_from_being_proven_before_that_it_is_not(self):
        rig = Rig()
        rig.conditions = ((Cause.PROFILE_STALE, "threads: 2 -> 4"),)
        rig.step()
        assert rig.state.causes == (Cause.PROFILE_STALE, Cause.UNPROVEN)
        assert rig.state.detail == "threads: 2 -> 4"
