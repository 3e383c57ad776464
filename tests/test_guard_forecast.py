"""The bound in force: by the board's level, by what the requests take; and what happens when it no longer holds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from guard_rig import Rig
from plant import PLANT, settings

from edgeguard.budget.drift import REPROOF
from edgeguard.clock import NS_PER_MS
from edgeguard.guard.forecast import MARGIN
from edgeguard.guard.interface import Promise, WorkerPhase
from edgeguard.types import BoardState, Cause, Finish, Mode, Source, ThermalLevel

MS = NS_PER_MS
STRETCHED = PLANT + "[budget]\nuncalibrated_factor = 1.5\n"


@pytest.fixture
def armed() -> Rig:
    return Rig().arm()


def board(level: ThermalLevel = ThermalLevel.NOMINAL, *, critical: bool = False) -> BoardState:
    return BoardState(
        level=level, observed=True, critical=critical, hottest_c=80.0, read_ns=1, detail="cpu-thermal 80.0 °C"
    )


class TestPromise:
    def test_it_reaches_as_far_as_its_bounds(self):
        known = Promise(bounds_ns=(1,), alpha=0.01, lag=1, observed=True)
        assert known.reached is ThermalLevel.NOMINAL
        assert replace(known, bounds_ns=(1, 2, 3)).reached is ThermalLevel.THROTTLED


class TestLevel:
    def test_every_request_names_the_boards_level_and_its_budget_has_that_levels_bound(self, armed):
        armed.hotter_ns = (120 * MS, 150 * MS)
        assert armed.observe().request.level is ThermalLevel.NOMINAL
        assert armed.answer().record.budget.bound_ns == 100 * MS
        armed.advance(180)
        armed.step(board=board(ThermalLevel.THROTTLED))
        assert armed.observe().request.level is ThermalLevel.THROTTLED
        assert armed.answer().record.budget.bound_ns == 150 * MS

    def test_a_level_whose_bound_does_not_fit_is_a_predicted_miss(self, armed):
        armed.hotter_ns = (190 * MS,)
        armed.step(board=board(ThermalLevel.HOT))
        record = armed.cycle()
        assert record.decision.causes == (Cause.PREDICTED_MISS,)
        assert "the bound is 190.0 ms" in record.decision.detail

    def test_a_level_that_was_never_measured_disarms_and_the_worst_known_one_goes_on_being_asked(self, armed):
        armed.hotter_ns = (120 * MS,)
        armed.step(board=board(ThermalLevel.THROTTLED))
        assert armed.mode is Mode.INTERVENING
        request = armed.observe().request
        assert (request.shadow, request.level) == (True, ThermalLevel.HOT)
        record = armed.answer().record
        assert record.decision.causes == (Cause.LEVEL_UNCALIBRATED,)
        assert "the board is throttled, and was measured up to hot" in record.decision.detail
        armed.step(board=board(ThermalLevel.HOT))
        assert armed.mode is Mode.ARMED

    def test_or_by_configuration_the_worst_known_bound_is_stretched(self):
        rig = Rig(settings(STRETCHED)).arm()
        rig.step(board=board(ThermalLevel.HOT))
        assert rig.mode is Mode.ARMED
        record = rig.cycle(latency_ms=140)
        assert record.budget.bound_ns == 150 * MS
        assert (rig.request.level, rig.request.margin) == (ThermalLevel.HOT, 1.0), "the worker applies the factor"
        assert record.decision.source is Source.MODEL
        assert rig.state.doubt.exceeded == 0
        rig.cycle(latency_ms=160)
        assert rig.state.doubt.exceeded == 1

    @pytest.mark.parametrize(("latency_ms", "exceeded"), [(140, 0), (160, 1)])
    def test_a_bound_that_the_worker_states_has_the_factor_in_it_already(self, latency_ms, exceeded):
        rig = Rig(settings(STRETCHED)).arm()
        rig.step(board=board(ThermalLevel.HOT))
        rig.observe()
        rig.advance(latency_ms)
        rig.answer(bound_ns=150 * MS)
        assert rig.state.doubt.exceeded == exceeded

    def test_without_a_calibration_there_is_no_level(self, armed):
        armed.bound_ns = None
        armed.step(board=board(ThermalLevel.THROTTLED))
        assert armed.observe().request.level is ThermalLevel.NOMINAL
        assert armed.mode is Mode.ARMED

    def test_a_calibration_that_has_not_seen_the_board_counts_as_nominal_at_every_level(self, armed):
        armed.observed = False
        armed.step(board=board(ThermalLevel.THROTTLED))
        request = armed.observe().request
        assert (request.shadow, request.level) == (False, ThermalLevel.NOMINAL)

    def test_a_change_is_one_event_with_its_numbers(self, armed):
        armed.hotter_ns = (100 * MS,)
        for level in (ThermalLevel.NOMINAL, ThermalLevel.HOT, ThermalLevel.HOT, ThermalLevel.NOMINAL):
            armed.step(board=board(level))
            armed.advance(40)
        assert armed.named("thermal level") == ["hot: cpu-thermal 80.0 °C", "nominal: cpu-thermal 80.0 °C"]

    def test_a_critical_temperature_stops_until_it_is_gone(self, armed):
        armed.step(board=board(critical=True))
        armed.advance(200)
        assert armed.causes >= {Cause.TEMPERATURE_CRITICAL}
        assert armed.state.ledger[Cause.TEMPERATURE_CRITICAL].detail == "cpu-thermal 80.0 °C"
        assert armed.speeds[-1] < armed.speeds[-5]
        armed.step(board=board())
        assert Cause.TEMPERATURE_CRITICAL not in armed.causes


class TestDrift:
    def test_first_the_margin_grows_and_is_in_every_budget(self, armed):
        armed.bound_ns = 90 * MS
        for _ in range(8):
            record = armed.cycle(latency_ms=100)  # more than the bound, less than with its margin
        assert armed.mode is Mode.ARMED
        assert record.decision.source is Source.MODEL
        assert record.budget.bound_ns == 135 * MS
        assert armed.observe().request.margin == MARGIN
        (said,) = armed.named("margin on the bound")
        assert said.startswith("5 of the last 12 requests took more than the bound of 90 ms, and 1% may; 59 in a row")

    def test_it_shrinks_again_when_enough_requests_have_kept_to_the_bound(self, armed):
        for _ in range(8):
            armed.cycle(latency_ms=110)
        for _ in range(REPROOF):
            assert armed.cycle(latency_ms=100).budget.bound_ns == 150 * MS
        assert armed.cycle(latency_ms=100).budget.bound_ns == 100 * MS
        assert armed.named("margin on the bound")[-1] == "as calibrated again"

    def test_a_bound_that_no_longer_fits_with_its_margin_is_a_predicted_miss(self, armed):
        armed.bound_ns = 130 * MS
        for _ in range(8):
            armed.cycle(latency_ms=140)
        assert armed.causes == {Cause.PREDICTED_MISS}

    def test_when_requests_exceed_even_that_the_model_is_disarmed_with_the_numbers(self, armed):
        for _ in range(8):
            record = armed.cycle(latency_ms=160)
        assert armed.state.counters.trips == 1
        assert armed.mode is Mode.INTERVENING
        assert record.decision.causes == (Cause.DRIFT_ALARM,)
        assert "of the last 12 requests took more than the bound of 150 ms, and 1% may" in record.decision.detail
        assert record.shadow

    def test_the_answer_that_raises_the_alarm_is_not_applied(self, armed):
        for _ in range(5):
            record = armed.cycle(latency_ms=160)
        assert (record.shadow, record.decision.source) == (False, Source.SAFE)
        assert record.decision.causes == (Cause.DRIFT_ALARM,)

    def test_shadows_go_on_feeding_it_and_only_a_row_that_keeps_to_the_bound_arms_again(self, armed):
        for _ in range(8):
            armed.cycle(latency_ms=160)
        for _ in range(40):
            armed.cycle(latency_ms=100)
        armed.cycle(latency_ms=160)
        for _ in range(REPROOF):
            assert armed.cycle(latency_ms=100).decision.causes == (Cause.DRIFT_ALARM,)
        assert armed.cycle(latency_ms=100).decision.source is Source.MODEL

    @pytest.mark.parametrize(("over_ns", "exceeded"), [(0, 0), (1, 1)])
    def test_a_request_exceeds_its_bound_by_a_nanosecond_and_is_measured_from_its_release(
        self, armed, over_ns, exceeded
    ):
        armed.observe(age_ms=20)
        armed.advance(99)
        armed.now_ns = armed.request.observation.captured_ns + (20 + 100) * MS + over_ns
        armed.answer()
        assert armed.state.doubt.exceeded == exceeded

    def test_the_bound_is_the_one_that_the_request_was_admitted_with(self, armed):
        armed.observe()
        armed.advance(80)
        armed.answer(bound_ns=79 * MS)
        assert (armed.state.doubt.exceeded, armed.state.drift.exceeded) == (1, 0)

    @pytest.mark.parametrize("finish", [Finish.DEADLINE, Finish.ERROR])
    def test_one_that_was_cut_off_counts_as_a_miss(self, armed, finish):
        armed.observe()
        armed.answer(finish=finish)
        assert (armed.state.doubt.exceeded, armed.state.drift.exceeded) == (1, 1)

    def test_one_that_was_not_admitted_says_nothing(self, armed):
        seen = armed.state.doubt.seen
        armed.observe()
        armed.answer(finish=Finish.INFEASIBLE)
        assert armed.state.doubt.seen == seen

    def test_nor_does_one_that_was_not_left_its_bound(self, armed):
        seen = armed.state.doubt.seen
        armed.cycle(latency_ms=199, said="go on")
        assert armed.state.doubt.seen == seen + 1
        armed.bound_ns = 188 * MS
        armed.cycle(latency_ms=199)
        assert armed.state.doubt.seen == seen + 1

    def test_a_worker_that_says_nothing_more_hangs_and_is_no_drift(self, armed):
        while not armed.restarts:
            armed.observe()
            armed.advance(200)
        assert armed.state.doubt.exceeded == 1
        assert Cause.DRIFT_ALARM not in armed.causes

    def test_late_answers_are_signs_of_life_and_each_of_them_a_miss(self, armed):
        for _ in range(4):
            armed.cycle(latency_ms=199)
        assert armed.state.doubt.exceeded == 4

    def test_requests_take_turns_among_as_many_streams_as_the_profile_has_lag(self):
        rig = Rig()
        rig.lag = 3
        rig.arm()
        assert len(rig.state.doubt.evidence) == len(rig.state.drift.evidence) == 3

    def test_without_a_calibration_nothing_is_watched(self):
        rig = Rig()
        rig.bound_ns = None
        rig.arm()
        assert rig.state.doubt.seen == 0
        rig.phase = WorkerPhase.GONE
        rig.step()

    def test_its_threshold_is_a_thousand_hours_of_the_robots_period(self):
        assert settings().alarm_at == 1_000 * 3_600 * 5
        assert MARGIN == 1.5

    def test_a_looser_threshold_alarms_sooner(self):
        rig = Rig(replace(settings(), alarm_at=10.0)).arm()
        rig.cycle(latency_ms=199)
        assert Cause.DRIFT_ALARM in rig.causes


class TestConfidence:
    PICKY = PLANT.replace("[answer.schema]", "[answer]\nmin_confidence = 0.6\n[answer.schema]", 1)

    @pytest.fixture
    def picky(self) -> Rig:
        rig = Rig(settings(self.PICKY))
        while rig.mode is not Mode.ARMED:
            self.answer(rig, 0.9)
        return rig

    def answer(self, rig: Rig, confidence: float | None):
        rig.observe()
        rig.advance(100)
        record = rig.answer(confidence=confidence).record
        rig.advance(100)
        return record

    @pytest.mark.parametrize(("confidence", "sure"), [(0.6, True), (0.5999, False), (0.0, False), (None, False)])
    def test_an_answer_below_it_is_not_applied(self, picky, confidence, sure):
        record = self.answer(picky, confidence)
        assert record.decision.source is (Source.MODEL if sure else Source.SAFE)
        assert record.decision.causes == (() if sure else (Cause.LOW_CONFIDENCE,))

    def test_it_says_how_sure_it_was(self, picky):
        assert "it is 41.2% sure, and min_confidence is 0.6" in self.answer(picky, 0.412).decision.detail
        assert "it does not say how sure it is" in self.answer(picky, None).decision.detail

    def test_the_next_sure_answer_ends_it(self, picky):
        self.answer(picky, 0.1)
        assert picky.state.credit == 2
        record = self.answer(picky, 0.9)
        assert record.decision.source is Source.MODEL

    def test_a_shadow_that_is_unsure_proves_nothing_and_costs_nothing(self):
        rig = Rig(settings(self.PICKY))
        for _ in range(5):
            self.answer(rig, 0.1)
        assert rig.causes == {Cause.UNPROVEN, Cause.LOW_CONFIDENCE}
        assert (rig.state.credit, rig.state.counters.misses) == (3, 0)

    def test_without_it_nobody_asks_how_sure(self):
        assert settings().min_confidence is None
        assert Rig().arm().mode is Mode.ARMED
