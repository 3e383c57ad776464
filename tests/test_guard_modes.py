"""The story of the modes: how the guard is armed, what takes it away from the model, and how it comes back."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from guard_rig import Rig
from plant import PLANT, settings

from edgeguard.clock import NS_PER_MS
from edgeguard.guard.causes import TABLE, Clear
from edgeguard.guard.core import step
from edgeguard.guard.interface import WorkerPhase
from edgeguard.guard.state import GuardState
from edgeguard.types import Action, Cause, Finish, Grade, Mode, OperatorWord, Source
from edgeguard.types.wire import LinkState, MotorFlag

MS = NS_PER_MS
WARMING, READY, GONE, UNAVAILABLE = WorkerPhase
COUNTED = (Clear.FITTED, Clear.PROVEN, Clear.PROVEN_AND_DWELL)

STARTS = {
    "its time is up": ([(WARMING, 500)], True),
    "a tick is left": ([(WARMING, 480)], False),
    "it is ready in time": ([(WARMING, 480), (READY, 2_000)], False),
    "nothing is started yet": ([(GONE, 2_000)], False),
    "nobody tries any more": ([(UNAVAILABLE, 2_000)], False),
    "each start has the whole time": ([(WARMING, 480), (GONE, 100), (WARMING, 480)], False),
    "so has a second one": ([(WARMING, 480), (GONE, 100), (WARMING, 500)], True),
}


@pytest.fixture
def armed() -> Rig:
    return Rig().arm()


class TestEvents:
    def test_a_cause_is_raised_once_and_cleared_with_how_long_it_held(self, armed):
        armed.events.clear()
        for _ in range(2):
            armed.cycle(latency_ms=199)
            raised = armed.named("cause raised")
            assert raised == ["miss: no answer 187.0 ms after the release (noticed 0.00 ms later)"]
        armed.cycle()
        assert armed.named("cause cleared") == ["miss: after 313 ms"]


class TestProof:
    @pytest.mark.parametrize("cause", [cause for cause, row in TABLE.items() if row.clear in COUNTED])
    def test_what_still_holds_is_not_proven_away(self, armed, cause):
        armed.conditions = ((cause, "seen elsewhere"),)
        armed.step()
        armed.events.clear()
        for _ in range(8):
            armed.cycle()
        assert cause in armed.causes
        assert armed.named("cause cleared") == []


class TestStart:
    def test_three_shadow_answers_on_time_arm_and_the_fourth_moves(self):
        rig = Rig()
        shadows = [rig.cycle() for _ in range(3)]
        assert all(record.shadow and record.decision.source is Source.SAFE for record in shadows)
        assert [record.mode for record in shadows] == [Mode.INHIBITED] * 3
        assert rig.mode is Mode.ARMED
        assert set(rig.speeds) == {0.0}
        real = rig.cycle()
        assert (real.decision.source, real.mode, real.shadow) == (Source.MODEL, Mode.ARMED, False)
        assert rig.speeds[-1] > 0

    def test_an_axis_that_stands_where_it_shall_be_follows_too(self, armed):
        assert [axis.decel for axis in armed.state.motion.axes] == [None] * 3

    @pytest.mark.parametrize("phase", [WorkerPhase.WARMING, WorkerPhase.GONE, WorkerPhase.UNAVAILABLE])
    def test_a_worker_that_is_not_ready_is_not_asked_and_the_decision_is_made_at_once(self, phase):
        rig = Rig()
        rig.phase = phase
        effects = rig.observe()
        assert effects.request is None
        assert effects.record is not None
        assert effects.record.decision.source is Source.SAFE
        assert rig.causes > {Cause.UNPROVEN}

    def test_without_an_echo_of_standstill_it_stays_inhibited(self):
        rig = Rig()
        rig.moving = True
        for _ in range(6):
            rig.cycle()
        assert rig.mode is Mode.INHIBITED
        assert rig.causes == {Cause.NO_ECHO}
        rig.moving = None
        rig.cycle()
        assert rig.mode is Mode.ARMED

    def test_a_miss_begins_the_proof_anew(self):
        rig = Rig()
        rig.cycle()
        rig.cycle()
        rig.cycle(latency_ms=199)
        rig.cycle()
        rig.cycle()
        assert rig.mode is Mode.INHIBITED
        rig.cycle()
        assert rig.mode is Mode.ARMED

    def test_an_inhibited_guard_sends_stops_at_every_tick(self):
        rig = Rig()
        rig.advance(200)
        assert {set_point.action for _, set_point in rig.sent} == {Action.STOP}
        assert {set_point.life_ms for _, set_point in rig.sent} == {80}
        times = [at for at, _ in rig.sent]
        assert {later - sooner for sooner, later in pairwise(times)} == {20 * MS}

    def test_the_link_is_no_reason_to_wait_with_the_proof(self):
        rig = Rig()
        rig.link = LinkState.HANDSHAKING
        for _ in range(4):
            rig.cycle()
        assert rig.causes == {Cause.LINK_LOST}
        assert rig.sent == []
        rig.link = LinkState.UP
        rig.step()
        assert rig.effects.send.action is Action.STOP
        rig.advance(20)
        assert rig.mode is Mode.ARMED


class TestMiss:
    def test_a_single_miss_is_a_comfortable_ramp_that_the_next_answer_ends(self, armed):
        top = armed.speeds[-1]
        missed = armed.cycle(latency_ms=199)
        assert armed.state.counters.trips == 1
        assert armed.state.counters.misses == 1
        assert (missed.decision.causes, missed.mode) == ((Cause.MISS,), Mode.INTERVENING)
        assert missed.decision.grade is Grade.COMFORTABLE
        assert missed.answer is None
        assert 0 < armed.speeds[-1] < top
        caught = armed.cycle()
        assert (caught.decision.source, caught.mode, caught.shadow) == (Source.MODEL, Mode.ARMED, False)

    def test_the_return_is_bumpless(self, armed):
        armed.cycle(latency_ms=199)
        before = len(armed.sent)
        armed.cycle()
        rates = [
            (later[1].axes["linear"] - sooner[1].axes["linear"]) / ((later[0] - sooner[0]) / 1e9)
            for sooner, later in zip(armed.sent[before - 1 :], armed.sent[before:], strict=False)
        ]
        assert max(rates) <= 1.0 + 1e-6
        assert min(rates) >= -1.0 - 1e-6

    def test_the_accumulator_turns_misses_into_an_emergency_stop_with_dwell(self, armed):
        for _ in range(3):
            record = armed.cycle(latency_ms=199)
        assert Cause.MISSES_ACCUMULATED in record.decision.causes
        assert record.decision.grade is Grade.EMERGENCY
        raised_ns = armed.state.ledger[Cause.MISSES_ACCUMULATED].raised_ns
        while armed.mode is not Mode.ARMED:
            assert armed.cycle().shadow
        assert armed.now_ns - raised_ns >= armed.settings.dwell_ns

    def test_on_time_answers_refill_it_a_quarter_each(self, armed):
        for _ in range(2):
            armed.cycle(latency_ms=199)
        assert armed.state.credit == 1.0
        for _ in range(4):
            armed.cycle()
        assert armed.state.credit == 2.0
        for _ in range(20):
            armed.cycle()
        assert armed.state.credit == 3.0

    @pytest.mark.parametrize(
        ("finish", "values", "cause"),
        [
            (Finish.DEADLINE, {}, Cause.INCOMPLETE_ANSWER),
            (Finish.ERROR, {}, Cause.INCOMPLETE_ANSWER),
            (Finish.INVALID, {}, Cause.INVALID_ANSWER),
            (Finish.INFEASIBLE, {}, Cause.INFEASIBLE),
            (Finish.COMPLETE, {}, Cause.INCOMPLETE_ANSWER),
            (Finish.COMPLETE, {"speed": 9, "turn": "left", "grip": True}, Cause.INVALID_ANSWER),
            (Finish.COMPLETE, {"speed": float("nan"), "turn": "left", "grip": True}, Cause.INVALID_ANSWER),
        ],
    )
    def test_an_answer_that_cannot_be_used_takes_the_path_of_a_miss(self, armed, finish, values, cause):
        armed.observe()
        armed.advance(50)
        record = armed.answer(values, finish=finish).record
        assert record.decision.source is Source.SAFE
        assert record.decision.causes == (cause,)
        assert (armed.state.credit < 3) == TABLE[cause].drains
        assert armed.mode is Mode.INTERVENING

    def test_an_infeasible_plan_clears_when_the_bound_has_fitted_three_times(self, armed):
        armed.observe()
        armed.answer(finish=Finish.INFEASIBLE)
        armed.advance(195)
        records = [armed.cycle() for _ in range(4)]
        assert [record.shadow for record in records] == [True, True, True, False]
        assert records[-1].decision.source is Source.MODEL


class TestLatch:
    def test_the_operators_stop_acts_at_once_and_latches(self, armed):
        armed.advance(7)
        effects = armed.step(operator=(OperatorWord.STOP,))
        assert armed.mode is Mode.LATCHED
        assert effects.send.action is Action.STOP
        assert effects.latch is True
        for _ in range(5):
            armed.cycle()
        assert armed.mode is Mode.LATCHED
        assert armed.speeds[-1] == 0

    def test_only_a_rearm_ends_it_and_moves_nothing(self, armed):
        armed.step(operator=(OperatorWord.STOP,))
        armed.cycle()
        epoch = armed.state.epoch
        effects = armed.step(operator=(OperatorWord.REARM,))
        assert effects.latch is False
        assert armed.mode is Mode.INHIBITED
        assert armed.state.epoch == epoch + 1
        assert armed.named("re-armed")
        assert all(armed.cycle().shadow for _ in range(3))
        assert armed.mode is Mode.ARMED

    def test_a_stop_beside_the_rearm_wins(self, armed):
        armed.step(operator=(OperatorWord.STOP,))
        armed.advance(20)
        armed.step(operator=(OperatorWord.REARM, OperatorWord.STOP))
        assert armed.mode is Mode.LATCHED
        assert armed.named("re-arm refused") == ["still holds: operator stop"]

    def test_a_rearm_of_what_is_not_latched_does_nothing(self, armed):
        state = armed.state
        armed.step(operator=(OperatorWord.REARM,))
        assert armed.mode is Mode.ARMED
        assert armed.state.epoch == state.epoch
        assert armed.named("re-arm refused") == ["not latched"]

    def test_a_rearm_is_refused_while_the_cause_holds(self, armed):
        armed.flags = MotorFlag.ESTOP
        armed.step()
        assert armed.state.grade is Grade.TERMINAL
        armed.advance(20)
        armed.step(operator=(OperatorWord.REARM,))
        assert armed.mode is Mode.LATCHED
        armed.flags = MotorFlag(0)
        armed.advance(20)
        armed.step(operator=(OperatorWord.REARM,))
        assert armed.mode is Mode.INHIBITED

    def test_a_guard_that_starts_latched_stays_so_and_makes_no_new_file(self):
        rig = Rig(latched=True)
        for _ in range(5):
            rig.cycle()
        assert rig.mode is Mode.LATCHED
        assert rig.effects.latch is None
        rig.step(operator=(OperatorWord.REARM,))
        assert rig.mode is Mode.INHIBITED

    def test_a_guard_is_not_latched_unless_it_is_told_so(self):
        assert GuardState.initial(now_ns=1).mode is Mode.INHIBITED
        assert GuardState.initial(now_ns=1, latched=True).mode is Mode.LATCHED

    def test_an_unusable_state_directory_latches_and_refuses(self, armed):
        armed.conditions = ((Cause.LATCH_FILE, "cannot be written"),)
        armed.step()
        assert armed.mode is Mode.LATCHED
        assert armed.effects.latch is None
        armed.advance(20)
        armed.step(operator=(OperatorWord.REARM,))
        assert armed.mode is Mode.LATCHED

    @pytest.mark.parametrize("said", ["stop", "STOP!", " Halt. "])
    def test_the_operators_word_is_heard_before_the_model_hears_it(self, armed, said):
        effects = armed.observe(said=said)
        assert armed.mode is Mode.LATCHED
        assert effects.request is None or effects.request.shadow
        assert effects.send.action is Action.STOP

    def test_the_word_is_heard_in_a_stale_observation_too(self, armed):
        armed.observe(said="stop", age_ms=5_000)
        assert armed.mode is Mode.LATCHED

    def test_no_rearm_while_the_word_still_stands(self, armed):
        armed.observe(said="stop")
        armed.advance(20)
        armed.step(operator=(OperatorWord.REARM,))
        assert armed.mode is Mode.LATCHED
        armed.advance(180)
        armed.observe(said="go on")
        armed.step(operator=(OperatorWord.REARM,))
        assert armed.mode is Mode.INHIBITED

    def test_a_stop_inside_a_sentence_is_the_models_business(self, armed):
        armed.observe(said="do not stop")
        assert armed.mode is Mode.ARMED


class TestWorker:
    def test_its_death_is_a_comfortable_stop_and_a_new_epoch(self, armed):
        armed.observe()
        epoch = armed.state.epoch
        armed.advance(30)
        armed.phase = WorkerPhase.GONE
        effects = armed.step()
        assert effects.record.decision.causes == (Cause.WORKER_DEAD,)
        assert armed.state.epoch == epoch + 1
        assert effects.cancel == armed.request.request_id

    def test_its_replacement_proves_itself_before_it_is_armed(self, armed):
        armed.phase = WorkerPhase.GONE
        armed.step()
        armed.phase = WorkerPhase.WARMING
        armed.advance(100)
        armed.phase = WorkerPhase.READY
        armed.step()
        assert armed.causes == {Cause.UNPROVEN}
        assert armed.mode is Mode.INTERVENING
        assert [armed.cycle().shadow for _ in range(4)] == [True, True, True, False]

    def test_a_death_while_intervening_ends_the_open_cycle_too(self, armed):
        armed.cycle(latency_ms=199)
        armed.observe()
        epoch = armed.state.epoch
        armed.phase = WorkerPhase.GONE
        effects = armed.step()
        assert effects.record is not None
        assert armed.state.epoch == epoch + 1

    @pytest.mark.parametrize(("detail", "said"), [("exited with status 3", "exited with status 3"), ("", "gone")])
    def test_its_end_is_told_in_the_words_of_its_supervisor(self, armed, detail, said):
        gone = replace(armed.inputs.worker, phase=WorkerPhase.GONE, detail=detail)
        state, _ = step(armed.settings, armed.state, armed.now_ns, replace(armed.inputs, worker=gone))
        assert state.ledger[Cause.WORKER_DEAD].detail == said

    def test_one_that_leaves_requests_unanswered_for_too_long_is_replaced_once(self, armed):
        silent_since_ns = armed.now_ns
        while not armed.restarts:
            armed.observe()
            armed.advance(200)
        assert armed.restarts == 1
        assert len(armed.named("worker replaced")) == 1
        assert Cause.WORKER_HUNG in armed.causes
        assert 1_000 * MS <= armed.now_ns - silent_since_ns <= 1_600 * MS
        assert armed.observe().request is None
        armed.advance(200)
        assert armed.restarts == 1
        armed.phase = WorkerPhase.GONE
        armed.step()
        assert Cause.WORKER_HUNG not in armed.causes

    @pytest.mark.parametrize(("over_ns", "hung"), [(0, True), (1, False)])
    def test_it_hangs_when_its_silence_is_as_long_as_allowed_counted_from_its_last_answer(self, over_ns, hung):
        silence_ns = 2 * 187 * MS  # two requests, each until it would be too late
        rig = Rig(replace(settings(), hung_after_ns=silence_ns + over_ns)).arm()
        for _ in range(2):
            rig.observe()
            rig.advance(200)
        rig.advance(20)
        assert (Cause.WORKER_HUNG in rig.causes) is hung

    @pytest.mark.parametrize(("over_ns", "hung"), [(0, True), (1, False)])
    def test_what_its_predecessor_left_unanswered_is_not_its_own(self, over_ns, hung):
        rig = Rig(replace(settings(), hung_after_ns=2 * 187 * MS + over_ns)).arm()
        rig.observe()
        rig.advance(200)
        rig.phase = WorkerPhase.GONE
        rig.advance(200)
        rig.phase = WorkerPhase.READY
        for waited in range(2):
            assert Cause.WORKER_HUNG not in rig.causes, waited
            rig.observe()
            rig.advance(200)
        rig.advance(20)
        assert (Cause.WORKER_HUNG in rig.causes) is hung

    @pytest.mark.parametrize("case", STARTS)
    def test_one_that_is_not_ready_in_time_is_replaced(self, case):
        phases, replaced = STARTS[case]
        rig = Rig(replace(settings(), start_limit_ns=500 * MS))
        for phase, ms in phases:
            rig.phase = phase
            rig.step()
            rig.advance(ms)
        assert rig.restarts == replaced
        assert (Cause.WORKER_HUNG in rig.causes) is replaced
        told = rig.named("worker replaced")
        assert told == ["not ready within guard.start_limit_ms = 500; it was at: warming"] * replaced

    def test_one_that_was_not_ready_hangs_until_its_supervisor_has_taken_note(self):
        rig = Rig(replace(settings(), start_limit_ns=500 * MS))
        rig.phase = WARMING
        rig.step()
        rig.advance(600)
        assert (rig.restarts, Cause.WORKER_HUNG in rig.causes) == (1, True)
        rig.phase = GONE
        rig.step()
        assert Cause.WORKER_HUNG not in rig.causes

    def test_time_that_the_clock_goes_back_does_not_count_for_its_start(self):
        rig = Rig(replace(settings(), start_limit_ns=500 * MS))
        rig.phase = WARMING
        rig.step()
        rig.advance(400)
        rig.now_ns -= 300 * MS
        rig.step()
        rig.advance(80)
        assert rig.restarts == 0
        rig.advance(40)
        assert rig.restarts == 1

    def test_a_late_answer_is_a_sign_of_life(self, armed):
        for _ in range(12):
            armed.cycle(latency_ms=199)
        assert Cause.WORKER_HUNG not in armed.causes
        assert armed.state.counters.late == 12

    def test_so_is_that_it_has_given_up_what_was_called_off(self, armed):
        for _ in range(12):
            called_off = armed.observe().request
            armed.advance(199)
            armed.answer(request=called_off, finish=Finish.DEADLINE)
        assert Cause.WORKER_HUNG not in armed.causes
        assert armed.state.counters.late == 0
        assert armed.named("answer discarded") == []

    def test_a_pause_without_requests_is_no_silence(self, armed):
        armed.cycle(latency_ms=199)
        armed.advance(30_000)
        armed.cycle()
        assert Cause.WORKER_HUNG not in armed.causes

    def test_an_unavailable_worker_is_tried_again_by_a_rearm(self, armed):
        armed.phase = WorkerPhase.UNAVAILABLE
        armed.step(operator=(OperatorWord.REARM,))
        assert armed.named("re-armed") == ["the worker is tried again"]
        assert armed.mode is Mode.INTERVENING


class TestLink:
    def test_a_lost_link_is_said_and_nothing_is_sent(self, armed):
        armed.observe()
        armed.link = LinkState.LOST
        effects = armed.step()
        assert effects.send is None
        assert effects.record.decision.causes == (Cause.LINK_LOST,)
        assert "unplugged" in effects.record.decision.detail

    def test_after_a_reconnect_the_first_frame_is_a_stop_and_standstill_must_be_shown(self, armed):
        armed.link = LinkState.LOST
        armed.advance(100)
        armed.link, armed.generation, armed.moving = LinkState.UP, 2, True
        epoch = armed.state.epoch
        effects = armed.step()
        assert effects.send.action is Action.STOP
        assert armed.mode is Mode.INHIBITED
        assert armed.state.epoch == epoch + 1
        assert armed.causes == {Cause.NO_ECHO}
        for _ in range(4):
            armed.cycle()
            assert armed.mode is Mode.INHIBITED
        armed.moving = None
        armed.step()
        assert armed.mode is Mode.ARMED

    def test_a_link_that_comes_back_in_the_same_session_must_show_standstill_too(self, armed):
        armed.link = LinkState.HANDSHAKING
        armed.step()
        armed.link, armed.moving = LinkState.UP, True
        armed.step()
        assert armed.causes == {Cause.NO_ECHO}

    def test_a_silent_motor_controller_is_an_emergency_until_it_shows_standstill(self, armed):
        armed.echoes = False
        armed.cycle()
        armed.cycle()
        assert armed.causes >= {Cause.NO_ECHO}
        assert armed.state.grade is Grade.EMERGENCY
        armed.echoes, armed.moving = True, True
        armed.cycle()
        assert Cause.NO_ECHO in armed.causes
        armed.moving = None
        armed.cycle()
        assert Cause.NO_ECHO not in armed.causes

    @pytest.mark.parametrize(
        ("flag", "cause"),
        [
            (MotorFlag.FAULT, Cause.CONTROLLER_FAULT),
            (MotorFlag.ESTOP, Cause.CONTROLLER_ESTOP),
            (MotorFlag.LATCHED, Cause.SESSION_MISMATCH),
        ],
    )
    def test_what_the_motor_controller_says_of_itself_is_a_cause(self, armed, flag, cause):
        armed.flags = flag
        armed.step()
        assert cause in armed.causes

    @pytest.mark.parametrize(("over_ns", "missed"), [(0, False), (1, True)])
    def test_an_echo_counts_until_its_time_out_sharp(self, armed, over_ns, missed):
        armed.step()
        armed.echoes = False
        armed.now_ns += armed.settings.echo_timeout_ns + over_ns
        armed.step()
        assert (Cause.NO_ECHO in armed.causes) is missed

    def test_an_echo_of_another_session_is_a_cause(self, armed):
        armed.echo_session = 7
        armed.step()
        assert armed.causes == {Cause.SESSION_MISMATCH}
        armed.echo_session = 1
        armed.step()
        assert armed.mode is Mode.ARMED


class TestClock:
    @pytest.mark.parametrize("step_ns", [60_000 * MS, -60_000 * MS])
    def test_a_suspended_machine_latches(self, armed, step_ns):
        armed.offset_ns += step_ns
        armed.step()
        assert armed.mode is Mode.LATCHED
        assert armed.causes == {Cause.CLOCK_JUMP}

    @pytest.mark.parametrize(("step_ns", "jumped"), [(20 * MS, False), (20 * MS + 1, True), (-20 * MS, False)])
    def test_a_tick_is_how_far_they_may_part_at_once(self, armed, step_ns, jumped):
        armed.offset_ns += step_ns
        armed.step()
        assert (Cause.CLOCK_JUMP in armed.causes) is jumped

    def test_the_two_clocks_may_differ_and_drift_a_little(self, armed):
        for _ in range(100):
            armed.offset_ns += MS
            armed.step()
        assert armed.mode is Mode.ARMED

    @pytest.mark.parametrize(("back_ns", "jumped"), [(0, False), (1, True)])
    def test_time_may_stand_still_but_never_go_back(self, armed, back_ns, jumped):
        armed.step()
        armed.now_ns -= back_ns
        armed.step()
        assert (Cause.CLOCK_JUMP in armed.causes) is jumped

    def test_a_clock_that_goes_back_latches_and_the_wire_is_still_served(self, armed):
        armed.observe()
        armed.now_ns -= 500 * MS
        effects = armed.step()
        assert armed.mode is Mode.LATCHED
        assert effects.record is not None
        assert effects.send.action is Action.STOP
        sent = len(armed.sent)
        armed.advance(200)
        assert len(armed.sent) == sent + 10
        armed.step(operator=(OperatorWord.REARM,))
        for _ in range(4):
            armed.cycle()
        assert armed.mode is Mode.ARMED

    @pytest.mark.parametrize(("late_ns", "overrun"), [(20 * MS, False), (20 * MS + 1, True)])
    def test_more_than_a_tick_late_is_an_overrun(self, armed, late_ns, overrun):
        armed.step(lateness_ns=late_ns)
        assert (Cause.GUARD_OVERRUN in armed.causes) is overrun
        assert armed.state.counters.overruns == overrun

    def test_the_core_notices_by_itself_that_it_was_not_called(self, armed):
        armed.now_ns = armed.effects.wake_ns + 21 * MS
        armed.step()
        assert armed.causes == {Cause.GUARD_OVERRUN}
        assert armed.cycle().decision.source is Source.MODEL


class TestIdle:
    def test_standstill_without_a_command_needs_no_observation(self):
        rig = Rig()
        for _ in range(3):
            rig.cycle()
        rig.advance(60_000)
        assert rig.mode is Mode.ARMED
        assert len(rig.records) == 3

    def test_a_robot_in_motion_does_and_each_period_without_one_is_recorded(self, armed):
        armed.follows = False  # rolls on
        count = len(armed.records)
        armed.advance(2_000)
        assert armed.mode is Mode.INTERVENING
        assert armed.causes == {Cause.NO_OBSERVATION}
        absent = armed.records[count:]
        assert {record.observation for record in absent} == {None}
        assert len(absent) == 10  # the last observation is 200 ms old at the start, the time-out 400 ms
        armed.cycle()
        assert Cause.NO_OBSERVATION not in armed.causes

    def test_a_robot_that_has_come_to_rest_is_idle_again(self, armed):
        armed.advance(5_000)
        assert armed.speeds[-1] == 0
        assert armed.mode is Mode.ARMED

    @pytest.mark.parametrize(("after_ms", "idle"), [(430, False), (5_000, True)])
    def test_without_an_echo_the_set_points_say_whether_it_stands(self, armed, after_ms, idle):
        armed.echoes = False
        armed.advance(after_ms)
        assert (armed.speeds[-1] == 0) is idle
        assert (Cause.NO_OBSERVATION not in armed.causes) is idle

    def test_the_model_command_ends_with_its_life(self):
        rig = Rig(settings(PLANT + "[timing]\nobservation_timeout_ms = 2000\n")).arm()
        captured_ns = rig.records[-1].observation.captured_ns
        moved = rig.now_ns
        rig.advance(600)
        moves = [(at, one) for at, one in rig.sent if one.action is Action.MOVE and at > moved]
        for at, one in moves:
            assert at + one.life_ms * MS + rig.settings.wire_ns <= captured_ns + rig.settings.life_ns
        assert rig.named("life ended") == ["no successor came in time"]
        assert rig.mode is Mode.ARMED
        assert rig.sent[-1][1].action is Action.STOP
        falls = [(sooner - later) / 0.02 for sooner, later in pairwise(rig.speeds[-12:])]
        assert max(falls) == pytest.approx(1.0, abs=0.05)  # comfortably


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_in_every_mode_ends_in_a_stop_of_its_grade(mode, cause):
    """The table: what a cause does does not depend on how the guard came to where it is."""
    rig = Rig()
    if mode is not Mode.INHIBITED:
        rig.arm()
    if mode is Mode.INTERVENING:
        rig.cycle(latency_ms=199)
    if mode is Mode.LATCHED:
        rig.step(operator=(OperatorWord.STOP,))
    assert rig.mode is mode
    rig.advance(10)
    rig.conditions = ((cause, "because"),)
    effects = rig.step()
    row = TABLE[cause]
    expected = mode
    if row.latches:
        expected = Mode.LATCHED
    elif mode is Mode.ARMED:
        expected = Mode.INTERVENING
    assert rig.mode is expected
    assert rig.state.ledger[cause].grade is row.grade
    assert rig.state.grade >= row.grade
    if mode is not expected:
        assert effects.send.action is Action.STOP
    assert effects.latch is (
        True if row.latches and mode is not Mode.LATCHED and cause is not Cause.LATCH_FILE else None
    )
    rig.advance(100)
    assert all(one.action is Action.STOP for at, one in rig.sent if at >= rig.now_ns - 100 * MS)
    rig.conditions = ()
    rig.step()
    assert (cause in rig.causes) is (row.clear is not Clear.CONDITION)
    speeds = rig.speeds[-6:]
    assert speeds == sorted(speeds, reverse=True)
