"""One cycle: what is asked, when a decision is made, and which answers are never applied."""

from __future__ import annotations

from decimal import Decimal

import pytest
from guard_rig import FAST, Rig
from plant import PLANT, settings

from edgeguard.clock import NS_PER_MS
from edgeguard.guard.interface import WorkerPhase
from edgeguard.types import Action, Cause, Grade, Mode, Observation, Source
from edgeguard.types.wire import LinkState

MS = NS_PER_MS


@pytest.fixture
def armed() -> Rig:
    return Rig().arm()


class TestDeadline:
    @pytest.mark.parametrize(("offset_ns", "source"), [(-1, Source.MODEL), (0, Source.MODEL), (1, Source.SAFE)])
    def test_an_answer_is_on_time_until_answer_by_sharp(self, armed, offset_ns, source):
        request = armed.observe().request
        armed.advance((request.answer_by_ns - armed.now_ns) // MS - 1)
        armed.now_ns = request.answer_by_ns + offset_ns
        record = armed.answer().record
        assert record.decision.source is source
        assert record.decision.decided_ns == armed.now_ns
        assert (record.decision.grade is Grade.NONE) is (source is Source.MODEL)
        if source is Source.SAFE:
            assert record.decision.causes == (Cause.MISS,)
            assert armed.state.counters.late == 1

    def test_without_an_answer_the_decision_is_made_when_it_would_be_too_late(self, armed):
        request = armed.observe().request
        armed.advance((request.answer_by_ns - armed.now_ns) // MS - 1)
        armed.now_ns = request.answer_by_ns - 1
        assert armed.step().record is None
        assert armed.effects.wake_ns == request.answer_by_ns
        armed.now_ns += 1
        effects = armed.step()
        assert effects.record.decision.causes == (Cause.MISS,)
        assert effects.cancel == request.request_id
        assert effects.send is not None

    def test_the_budget_says_where_the_time_goes(self, armed):
        request = armed.observe(age_ms=12).request
        armed.advance(100)
        budget = armed.answer().record.budget
        assert (budget.deadline_ns, budget.age_ns, budget.wire_ns) == (200 * MS, 12 * MS, 3 * MS)
        assert (budget.reserve_ns, budget.bound_ns) == (5 * MS, 100 * MS)
        assert budget.available_ns == 180 * MS
        assert budget.slack_ns == 80 * MS
        assert request.answer_by_ns == request.observation.captured_ns + 192 * MS

    def test_the_life_counts_from_the_capture(self, armed):
        armed.observe(age_ms=90)
        armed.advance(50)
        life_end_ns = armed.request.observation.captured_ns + 420 * MS
        armed.answer()
        armed.advance(500)
        moves = [(at, one) for at, one in armed.sent if one.action is Action.MOVE]
        assert max(at + one.life_ms * MS for at, one in moves) <= life_end_ns

    @pytest.mark.parametrize(("left_ns", "action"), [(MS, Action.MOVE), (MS - 1, Action.STOP)])
    def test_a_command_with_less_than_a_millisecond_to_live_is_not_sent(self, left_ns, action):
        rig = Rig(settings(PLANT + "[timing]\nobservation_timeout_ms = 2000\n")).arm()
        tick_ns, until_ns = rig.settings.tick_ns, rig.state.engagement.expires_ns - rig.settings.wire_ns - left_ns
        rig.now_ns = (
            rig.state.next_tick_ns + (until_ns - rig.state.next_tick_ns) % tick_ns
        )  # so that a tick falls there
        rig.step()
        rig.advance((until_ns - rig.now_ns) / MS)
        assert rig.sent[-1][0] == until_ns
        assert rig.sent[-1][1].action is action


def test_a_rule_that_stops_harder_than_what_called_it_gives_the_decision_its_grade():
    rig = Rig(settings(PLANT.replace("axes = { linear = -0.1 }", 'grade = "emergency"'))).arm()
    rig.observe(docked=True)
    rig.advance(195)
    decision = rig.records[-1].decision
    assert (decision.rule, decision.grade) == ("creep away", Grade.EMERGENCY)
    assert rig.state.grade is Grade.COMFORTABLE


def test_a_rule_moves_as_far_as_an_interlock_lets_it():
    turning = PLANT.replace("axes = { linear = -0.1 }", "axes = { linear = 0.1, angular = 0.5 }")
    rig = Rig(settings(turning)).arm()
    rig.observe(docked=True)
    rig.advance(100)
    _, last = rig.sent[-1]
    assert last.action is Action.MOVE
    assert 0 < last.axes["linear"] < 0.45  # on its way from 0.5 to the interlock's 0


class TestForecast:
    def test_a_bound_that_does_not_fit_decides_at_once_and_asks_for_the_proof_only(self, armed):
        armed.bound_ns = 183 * MS
        effects = armed.observe(age_ms=10)
        assert effects.request.shadow
        assert effects.record is None
        assert armed.mode is Mode.INTERVENING
        assert effects.send.action is Action.STOP
        armed.advance(50)
        record = armed.answer().record
        assert record.decision.causes == (Cause.PREDICTED_MISS,)
        assert record.decision.decided_ns == record.released_ns
        assert record.answer is not None
        assert "182.0 ms are left of the deadline, the bound is 183.0 ms" in record.decision.detail

    @pytest.mark.parametrize(("bound_ns", "fits"), [(187 * MS, True), (187 * MS + 1, False), (None, True)])
    def test_it_is_judged_to_the_nanosecond(self, armed, bound_ns, fits):
        armed.bound_ns = bound_ns
        assert armed.observe().request.shadow is not fits

    def test_the_last_nanosecond_is_still_time(self):
        rig = Rig(settings(PLANT.replace("max_age_ms = 150", "") + "[timing]\nmax_age_ms = 300\n")).arm()
        rig.bound_ns = None
        rig.now_ns += 1
        effects = rig.observe(age_ms=191.999999)
        assert (effects.request.shadow, rig.causes) == (False, set())

    def test_it_clears_when_the_bound_has_fitted_three_times(self, armed):
        armed.bound_ns = 250 * MS
        for _ in range(4):
            assert armed.cycle().decision.causes == (Cause.PREDICTED_MISS,)
        armed.bound_ns = 100 * MS
        assert [armed.cycle().shadow for _ in range(4)] == [True, True, True, False]

    def test_a_forecast_that_comes_true_is_no_second_miss(self, armed):
        armed.bound_ns = 250 * MS
        record = armed.cycle(latency_ms=199)
        assert record.decision.causes == (Cause.PREDICTED_MISS,)
        assert armed.state.credit == 3
        assert armed.state.counters.misses == 0

    def test_without_any_time_left_nobody_is_asked(self):
        rig = Rig(settings(PLANT.replace("max_age_ms = 150", "") + "[timing]\nmax_age_ms = 300\n")).arm()
        rig.bound_ns = None
        effects = rig.observe(age_ms=192)
        assert effects.request is None
        assert effects.record.decision.causes == (Cause.PREDICTED_MISS,)
        assert "0.0 ms are left" in effects.record.decision.detail

    def test_a_worker_that_dies_ends_a_forecast_cycle_with_its_own_decision(self, armed):
        armed.bound_ns = 250 * MS
        armed.observe()
        armed.phase = WorkerPhase.GONE
        record = armed.step().record
        assert record.decision.causes == (Cause.PREDICTED_MISS,)


class TestWords:
    def test_a_number_is_said_as_it_was_written(self, armed):
        record = armed.cycle({"speed": Decimal("9.0"), "turn": "left", "grip": False})
        assert "the answer's 'speed' is 9.0, which is not one of its values" in record.decision.detail


class TestThrownAway:
    def test_a_late_answer(self, armed):
        request = armed.observe().request
        armed.advance(195)
        speeds = armed.speeds[-1]
        effects = armed.answer(request=request)
        assert effects.record is None
        assert armed.state.counters.late == 1
        assert armed.mode is Mode.INTERVENING
        assert armed.speeds[-1] <= speeds
        assert armed.named("answer discarded") == [f"late: request {request.request_id} of epoch 1 (now 2)"]

    def test_an_answer_of_another_epoch(self, armed):
        request = armed.observe().request
        assert armed.answer(epoch=request.epoch + 1).record is None
        assert armed.state.counters.foreign == 1
        assert armed.answer().record.decision.source is Source.MODEL

    def test_an_answer_that_was_given_before(self, armed):
        armed.observe()
        armed.answer()
        assert armed.answer().record is None
        assert armed.state.counters.repeated == 1

    @pytest.mark.parametrize("request_id", [-1, 0, 10**9])
    def test_an_answer_to_what_was_never_asked(self, armed, request_id):
        request = armed.observe().request
        armed.answer(request_id=request_id, epoch=request.epoch)
        assert armed.state.counters.unknown == 1
        assert armed.state.cycle is not None

    def test_an_answer_to_a_request_that_a_trip_has_ended(self, armed):
        request = armed.observe().request
        armed.conditions = ((Cause.TEMPERATURE_CRITICAL, "hot"),)
        assert armed.step().cancel == request.request_id
        armed.conditions = ()
        armed.step()
        assert armed.mode is Mode.ARMED
        armed.answer(request=request)
        assert armed.state.counters.late == 1
        assert armed.state.engagement is None

    def test_in_one_step_whatever_speaks_against_the_model_is_seen_before_its_answer(self, armed):
        armed.observe()
        armed.advance(50)
        answer = armed.make_answer()
        near = Observation(
            fields={"said": "", "front_m": 0.1, "linear": 0.0, "docked": False}, captured_ns=armed.now_ns - MS
        )
        record = armed.step(answers=(answer,), observation=near).record
        assert record.decision.source is Source.SAFE
        assert record.decision.causes == (Cause.RULE,)
        assert armed.state.counters.model == 4

    def test_of_two_answers_the_first_counts(self, armed):
        armed.observe()
        slow = {"speed": Decimal("0.1"), "turn": "left", "grip": False}
        record = armed.step(answers=(armed.make_answer(slow), armed.make_answer(FAST))).record
        assert record.answer.values == slow
        assert armed.state.counters.repeated == 1


class TestRelease:
    def test_a_period_releases_one_observation_the_newest(self, armed):
        count = len(armed.records)
        for at in range(0, 2_000, 50):
            armed.observe(front_m=1 + at / 1000)
            if armed.effects.request:
                armed.advance(30)
                armed.answer()
                armed.advance(20)
            else:
                armed.advance(50)
        assert 9 <= len(armed.records) - count <= 11

    @pytest.mark.parametrize("every_ms", [7, 13, 20, 33, 50, 66, 99, 110, 150, 170])
    def test_a_source_that_is_faster_than_the_period_does_not_hurry_the_model(self, armed, every_ms):
        count, next_ms = len(armed.records), 0
        for at_ms in range(0, 4_000, 5):
            if at_ms >= next_ms:
                next_ms += every_ms
                armed.observe()
            asked, armed.request = armed.request, None
            if asked:
                armed.answer(request=asked)
            armed.advance(5)
        assert 18 <= len(armed.records) - count <= 25

    def test_who_observes_at_once_after_each_decision_is_told_why_nothing_fits(self, armed):
        armed.bound_ns = 60 * MS
        details, count = [], len(armed.records)
        armed.observe()
        for _ in range(400):
            asked, armed.request = armed.request, None
            if asked:
                armed.answer(request=asked)
            if len(armed.records) > count:
                count = len(armed.records)
                details.append(armed.records[-1].decision.detail)
                armed.observe()
            armed.advance(5)
        assert "ms it waited for its period to open: observe when it does (Guard.periods)" in details[-1]

    def test_jitter_of_a_tick_loses_none(self, armed):
        count = len(armed.records)
        for early_ms in (0, 15, 0, 19, 5, 0, 18, 0):
            armed.observe()
            armed.advance(60)
            armed.answer()
            armed.advance(140 - early_ms)
            armed.advance(early_ms if early_ms < 15 else 0)
        armed.advance(100)
        assert len(armed.records) - count == 8

    @pytest.mark.parametrize(("early_ns", "waits"), [(100 * MS, False), (100 * MS + 1, True)])
    def test_half_a_period_early_is_early_enough(self, armed, early_ns, waits):
        begin_ns = armed.now_ns
        armed.observe()
        armed.answer()
        armed.advance(95)
        armed.now_ns = begin_ns + 200 * MS - early_ns
        assert (armed.observe().request is None) is waits

    def test_one_that_comes_while_a_request_is_open_waits_for_it(self):
        rig = Rig(settings(PLANT + "[timing]\ndeadline_ms = 400\nmax_age_ms = 100\n")).arm()
        first = rig.observe().request
        rig.advance(200)
        assert rig.observe().request is None
        rig.advance(10)
        rig.answer(request=first)
        assert rig.records[-1].observation is first.observation
        assert rig.request is first
        rig.advance(20)
        assert rig.request is not first
        assert rig.mode is Mode.ARMED

    def test_one_that_is_early_waits_for_the_period(self, armed):
        armed.observe()
        armed.advance(60)
        armed.answer()
        assert armed.observe(front_m=3).request is None
        armed.advance(140)
        assert armed.request.observation.fields["front_m"] == 3

    def test_requests_are_numbered(self, armed):
        first = armed.observe().request.request_id
        armed.answer()
        armed.advance(200)
        assert armed.observe().request.request_id == first + 1

    def test_a_refused_one_is_decided_at_once(self, armed):
        effects = armed.observe(front_m=None)
        assert effects.record.decision.causes == (Cause.MISSING_FIELD,)
        assert effects.record.observation.fields["front_m"] is None
        assert effects.request is None

    def test_every_released_observation_has_one_record_and_cycles_are_numbered(self, armed):
        for latency_ms in (50, 199, 100, 199, 199, 199, 20):
            armed.cycle(latency_ms=latency_ms)
        numbers = [record.cycle for record in armed.records]
        assert numbers == list(range(1, len(numbers) + 1))
        counters = armed.state.counters
        assert counters.cycles == counters.model + counters.safe == len(numbers)
        assert counters.model == [record.decision.source for record in armed.records].count(Source.MODEL)


class TestShadow:
    def test_a_shadow_answer_is_never_sent_even_when_the_guard_was_armed_meanwhile(self, armed):
        armed.conditions = ((Cause.DRIFT_ALARM, "slower"),)
        armed.step()
        request = armed.observe().request
        assert request.shadow
        armed.conditions = ()
        armed.advance(50)
        assert armed.mode is Mode.ARMED
        record = armed.answer().record
        assert (record.decision.source, record.shadow) == (Source.SAFE, True)
        assert "shadow" in record.decision.detail
        assert armed.state.engagement is None

    def test_a_real_answer_is_not_applied_when_something_else_has_come_and_gone_meanwhile(self, armed):
        armed.observe()
        armed.advance(200)
        assert armed.causes == {Cause.MISS}
        request = armed.observe().request
        assert not request.shadow
        armed.advance(40)
        armed.observe(front_m=0.1)
        assert Cause.RULE in armed.causes
        armed.advance(40)
        armed.observe(front_m=2.0)
        effects = armed.answer(request=request)
        assert (armed.mode, effects.record.shadow, effects.record.decision.source) == (Mode.ARMED, True, Source.SAFE)
        assert effects.send.action is not Action.MOVE

    def test_a_real_answer_is_not_applied_while_another_cause_holds(self, armed):
        armed.cycle(latency_ms=199)
        assert not armed.observe().request.shadow
        armed.conditions = ((Cause.DRIFT_ALARM, "slower"),)
        armed.advance(50)
        record = armed.answer().record
        assert record.decision.source is Source.SAFE
        assert Cause.DRIFT_ALARM in record.decision.causes
        assert Cause.MISS not in armed.causes

    def test_no_observation_while_a_request_is_open_is_recorded_after_it(self):
        rig = Rig(
            settings(PLANT + "[timing]\ndeadline_ms = 800\nmax_age_ms = 100\nobservation_timeout_ms = 300\n")
        ).arm()
        rig.follows = False
        rig.observe()
        rig.advance(340)
        assert rig.records[-1].decision.causes == (Cause.NO_OBSERVATION,)
        assert [record.observation is None for record in rig.records[-2:]] == [False, True]

    def test_with_the_link_down_answers_still_prove(self, armed):
        armed.link = LinkState.LOST
        armed.step()
        record = armed.cycle()
        assert record.shadow
        assert armed.state.credit == 3
