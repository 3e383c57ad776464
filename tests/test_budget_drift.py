"""The drift alarm: false as seldom as it says, quick as theory allows, and as quick after a day as after a minute."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.budget.drift import BETS, MOST_AT_STAKE, REPROOF, Drift, requests_per_false_alarm
from edgeguard.clock import NS_PER_MS

A = requests_per_false_alarm(200 * NS_PER_MS)


def feed(drift: Drift, indicators, *, alpha: float = 0.01, lag: int = 1, alarm_at: float = A) -> Drift:
    for exceeded in indicators:
        drift = drift.after(exceeded=bool(exceeded), alpha=alpha, lag=lag, alarm_at=alarm_at)
    return drift


class Many:
    """So many guards at once: the same arithmetic on arrays. ``alarms`` counts; each alarm starts its guard anew."""

    def __init__(self, guards: int, *, alpha: float, lag: int = 1, alarm_at: float = A) -> None:
        bets = np.minimum(BETS, MOST_AT_STAKE / alpha)
        self.kept, self.exceeded = 1 - bets * alpha, 1 + bets * (1 - alpha)
        self.evidence = np.zeros((lag, guards, len(BETS)))
        self.alarm_at = alarm_at
        self.seen = 0
        self.alarms = 0

    def step(self, exceeded):
        row = self.evidence[self.seen % len(self.evidence)]
        row += 1
        row *= np.where(exceeded[:, None], self.exceeded, self.kept)
        self.seen += 1
        total = row.mean(axis=1) if len(self.evidence) == 1 else self.evidence.mean(axis=2).sum(axis=0)
        alarmed = total >= self.alarm_at
        if alarmed.any():
            self.alarms += int(alarmed.sum())
            self.evidence[:, alarmed] = 0
        return alarmed


def independent(seed: int, guards: int, rate: float, requests: int):
    """Indicators of requests that know nothing of one another, in chunks that fit the memory."""
    dice = np.random.default_rng(seed)
    for _ in range(requests // 1_000):
        yield from dice.random((1_000, guards)) < rate


@given(st.lists(st.booleans(), max_size=60), st.sampled_from([0.001, 0.01, 0.05]), st.integers(1, 4))
def test_the_arrays_of_these_tests_do_what_the_detector_does(indicators, alpha, lag):
    many, drift = Many(1, alpha=alpha, lag=lag, alarm_at=math.inf), Drift()
    for exceeded in indicators:
        many.step(np.array([exceeded]))
        drift = drift.after(exceeded=exceeded, alpha=alpha, lag=lag, alarm_at=math.inf)
    assert drift.total == pytest.approx(many.evidence.mean(axis=2).sum())
    assert drift.seen == len(indicators)


@pytest.mark.parametrize(("alarm_at", "alpha"), [(A, 0.01), (20_000, 0.01), (20_000, 0.001)])
def test_false_alarms_come_no_more_often_than_stated(alarm_at, alpha):
    guards, requests = 200, 20_000
    many = Many(guards, alpha=alpha, alarm_at=alarm_at)
    for exceeded in independent(1, guards, alpha, requests):
        many.step(exceeded)
    expected = guards * requests / alarm_at  # at most, by theory
    assert guards * requests >= 1e6
    assert many.alarms <= expected


def clustered(seed: int, guards: int, rate: float, requests: int, *, dwell: float):
    """A regime that comes and goes, and in which requests exceed: they cluster, and the rate is the same."""
    dice = np.random.default_rng(seed)
    bad = dice.random(guards) < rate
    for _ in range(requests):
        chance = dice.random(guards)
        bad = np.where(bad, chance >= 1 / dwell, chance < rate / (1 - rate) / dwell)
        yield bad


def test_requests_that_cluster_need_as_many_streams_as_their_lag():
    alarms = {}
    for lag in (1, 20):
        many = Many(100, alpha=0.01, lag=lag, alarm_at=20_000)
        for exceeded in clustered(2, 100, 0.01, 20_000, dwell=5):
            many.step(exceeded)
        alarms[lag] = many.alarms
    stated = 100 * 20_000 / 20_000
    assert alarms[20] <= stated < alarms[1]


@pytest.mark.parametrize(("alpha", "after", "about"), [(0.01, 0.05, 400), (0.01, 0.25, 28), (0.001, 0.25, 14)], ids=str)
@pytest.mark.parametrize("healthy", [0, 100_000])
def test_a_drift_is_found_in_little_more_than_theory_needs_also_after_a_long_healthy_time(alpha, after, about, healthy):
    divergence = after * math.log(after / alpha) + (1 - after) * math.log((1 - after) / (1 - alpha))
    least = math.log(A) / divergence
    assert least == pytest.approx(about, rel=0.05)
    guards = 40
    many = Many(guards, alpha=alpha)
    for exceeded in independent(3, guards, alpha, healthy):
        many.step(exceeded)
    assert many.alarms == 0
    delay = np.zeros(guards)
    for number, exceeded in enumerate(independent(4, guards, after, 4_000), start=1):
        alarmed = many.step(exceeded) & (delay == 0)
        delay[alarmed] = number
        if delay.all():
            break
    assert delay.all(), "a drift that somebody never found"
    assert delay.mean() <= 1.5 * least, delay.mean()


class TestDetector:
    def test_its_mean_time_between_false_alarms_is_a_thousand_hours(self):
        assert A == 1_000 * 3_600 * 5

    def test_the_first_request_is_worth_its_factor(self):
        drift = feed(Drift(), [True], alpha=0.001)
        assert drift.evidence == ((1.999, 4.996, 16.984, 64.936),)
        assert drift.total == pytest.approx(sum((1.999, 4.996, 16.984, 64.936)) / 4)

    def test_no_bet_puts_all_at_stake(self):
        drift = feed(Drift(), [False], alpha=0.05)
        assert drift.evidence[0] == pytest.approx((0.95, 0.8, 0.2, 0.1))

    def test_requests_take_turns_among_the_streams(self):
        drift = feed(Drift(), [True, False, False, True], lag=3)
        assert [row[0] > 1 for row in drift.evidence] == [True, False, False]
        assert drift.evidence[0][0] == pytest.approx((1 + 1.99) * 1.99)

    def test_it_says_how_many_exceeded(self):
        for indicators, expected in (([True, False, True], (2, 3)), ([True] * 64 + [False] * 64, (0, 64))):
            drift = feed(Drift(), indicators)
            assert (drift.exceeded, drift.known) == expected

    @pytest.mark.parametrize(("above", "alarmed"), [(0.0, True), (0.001, False)])
    def test_the_alarm_is_at_the_stated_evidence_sharp(self, above, alarmed):
        reached = feed(Drift(), [True], alarm_at=math.inf).total
        assert feed(Drift(), [True], alarm_at=reached + above).alarmed is alarmed


class TestAlarm:
    @pytest.fixture
    def alarmed(self) -> Drift:
        drift = feed(Drift(), [True] * 10)
        assert drift.alarmed
        return drift

    @pytest.mark.parametrize(("kept", "on"), [(REPROOF - 1, True), (REPROOF, False)])
    def test_it_ends_when_enough_requests_in_a_row_have_kept_to_the_bound(self, alarmed, kept, on):
        assert feed(alarmed, [False] * kept).alarmed is on

    def test_one_that_exceeds_begins_the_row_anew(self, alarmed):
        assert feed(alarmed, [False] * 58 + [True] + [False] * 58).alarmed

    def test_a_long_drift_takes_no_longer_to_live_down_and_no_number_overflows(self, alarmed):
        long = feed(alarmed, [True] * 1_000)
        assert long.total == alarmed.total
        assert not feed(long, [False] * REPROOF).alarmed

    def test_after_it_the_watch_begins_anew_and_finds_the_next_drift(self, alarmed):
        again = feed(alarmed, [False] * REPROOF)
        assert again.total == 0
        assert feed(again, [True] * 5).alarmed

    def test_a_run_of_so_many_shows_what_it_says(self):
        assert 0.95**REPROOF < 0.05 < 0.95 ** (REPROOF - 1)
