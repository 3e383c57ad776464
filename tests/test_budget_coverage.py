"""Coverage by simulation: of hundreds of calibrations, how many name a p99, and how many of those are wrong.

Latencies are made by processes whose 99th percentile is known. "Wrong" is a bound below it. The stated confidence is
95 %, so at most 5 % may be both issued and wrong; each assertion allows for the simulation's own binomial error. What
no method can cover is shown too: a regime that the calibration never saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeguard.bench.calibration.scoring import name_bound
from edgeguard.budget.drift import Drift

Runs = NDArray[np.float32] | NDArray[np.float64]
"""A row for each calibration, in the order in which its requests were made."""

CONFIDENCE = 0.95
NORMAL_P99 = 2.3263


def autoregressive(rho: float, *, n: int, runs: int, seed: int) -> Runs:
    """AR(1), exp(0.05 x): a spread of 5 %; the marginal is the same whatever rho is."""
    random = np.random.default_rng(seed)
    values = np.empty((runs, n), dtype=np.float32)
    value = random.standard_normal(runs)
    for at in range(n):
        value = rho * value + math.sqrt(1 - rho**2) * random.standard_normal(runs)
        values[:, at] = value
    return np.exp(0.05 * values, out=values)


def regimes(fast: Callable[[int], NDArray[np.int64]], slow: Callable[[int], NDArray[np.int64]], *, n: int, runs: int,
            seed: int) -> tuple[Runs, float]:  # fmt: skip
    """Two regimes that take turns, their dwells drawn by ``fast(count)`` and ``slow(count)``: 1.0 and 1.5, with a
    spread of 0.1. Also the true p99, from the share of the time that each regime has."""
    random = np.random.default_rng(seed)
    mean_fast, mean_slow = fast(10_000).mean(), slow(10_000).mean()
    turns = 2 * math.ceil(n / (mean_fast + mean_slow)) + 200
    values = np.empty((runs, n))
    for run in values:
        dwells = np.empty(turns, dtype=np.int64)
        dwells[0::2], dwells[1::2] = fast(turns // 2), slow(turns // 2)
        which = np.repeat(np.arange(turns) % 2, dwells)
        start = random.integers(0, 5 * math.ceil(mean_fast + mean_slow))
        run[:] = 1.0 + 0.5 * which[start : start + n] + 0.1 * random.standard_normal(n)
    share = mean_slow / (mean_fast + mean_slow)
    return values, _mixture_p99(share)


def _mixture_p99(share: float) -> float:
    def beyond(x: float) -> float:
        fast, slow = (math.erfc((x - mean) / 0.1 / math.sqrt(2)) / 2 for mean in (1.0, 1.5))
        return (1 - share) * fast + share * slow

    low, high = 1.0, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > 0.01 else (low, middle)
    return low


def covered(calibrations: Runs, true_p99: float) -> tuple[float, float, float]:
    """The share that names a p99, the share that does and is wrong, and the mean bound over the true p99."""
    bounds = []
    for scores in calibrations:
        named = name_bound(scores, wanted=0.99, confidence=CONFIDENCE)  # type: ignore[arg-type]
        bounds.append(named.score if named is not None and named.percentile == 0.99 else math.nan)
    found = np.array(bounds)
    issued = ~np.isnan(found)
    ratio = float(found[issued].mean()) / true_p99 if issued.any() else math.nan
    return issued.mean(), (issued & (found < true_p99)).mean(), ratio


def band(rate: float, runs: int) -> float:
    """How far the share in so many simulated calibrations strays from ``rate``, one time in twenty."""
    return 1.64 * math.sqrt(rate * (1 - rate) / runs)


@pytest.mark.parametrize(
    ("rho", "n", "runs", "issued_least"),
    [
        (0.0, 300, 2_000, 0.95),
        (0.5, 1_000, 500, 0.80),
        (0.9, 9_000, 500, 0.80),
        (0.98, 40_000, 500, 0.80),
    ],
)
def test_slow_requests_that_follow_one_another_are_covered(rho: float, n: int, runs: int, issued_least: float) -> None:
    calibrations = autoregressive(rho, n=n, runs=runs, seed=1)
    issued, wrong, ratio = covered(calibrations, math.exp(0.05 * NORMAL_P99))
    assert issued >= issued_least - band(issued_least, runs)
    assert wrong <= 0.05 + band(0.05, runs)
    assert ratio <= 1.05


@pytest.mark.parametrize("case", ["even", "any up to 20", "geometric", "slow a tenth of the time"])
def test_two_regimes_are_covered(case: str) -> None:
    draw = np.random.default_rng(2)
    dwells = {
        "even": (lambda m: np.full(m, 20), lambda m: np.full(m, 20)),
        "any up to 20": (lambda m: draw.integers(1, 21, m), lambda m: draw.integers(1, 21, m)),
        "geometric": (lambda m: draw.geometric(1 / 20, m), lambda m: draw.geometric(1 / 20, m)),
        "slow a tenth of the time": (lambda m: draw.geometric(1 / 180, m), lambda m: draw.geometric(1 / 20, m)),
    }
    calibrations, true_p99 = regimes(*dwells[case], n=9_000, runs=500, seed=3)
    issued, wrong, ratio = covered(calibrations, true_p99)
    assert issued >= 0.80
    assert wrong <= 0.05 + band(0.05, 500)
    assert ratio <= 1.05


def test_taking_dependent_samples_for_independent_ones_would_promise_too_much() -> None:
    calibrations = autoregressive(0.9, n=300, runs=500, seed=4)
    wrong = np.mean(calibrations.max(axis=1) < math.exp(0.05 * NORMAL_P99))  # r = 1 of 299, had they been independent
    assert wrong > 0.25
    issued, wrong, _ = covered(calibrations, math.exp(0.05 * NORMAL_P99))
    assert issued < 0.1
    assert wrong <= 0.05


def test_mean_plus_three_sigmas_fails_where_the_order_statistic_holds() -> None:
    """Two percent of the requests take three times as long: every mu + 3 sigma lies below them."""
    random = np.random.default_rng(5)
    calibrations = np.where(random.random((500, 300)) < 0.02, 3.0, 1.0) + 0.01 * random.standard_normal((500, 300))
    true_p99 = 3.0  # half of the two percent lie above it
    three_sigmas = calibrations.mean(axis=1) + 3 * calibrations.std(axis=1)
    assert np.mean(three_sigmas < true_p99) == 1.0
    _, wrong, _ = covered(calibrations, true_p99)
    assert wrong <= 0.05 + band(0.05, 500)


def test_mean_plus_three_sigmas_fails_on_two_regimes_too() -> None:
    random = np.random.default_rng(6)
    calibrations, true_p99 = regimes(
        lambda m: random.geometric(1 / 980, m), lambda m: random.geometric(1 / 20, m), n=9_000, runs=500, seed=7
    )
    assert np.mean(calibrations.mean(axis=1) + 3 * calibrations.std(axis=1) < true_p99) > 0.9
    _, wrong, _ = covered(calibrations, true_p99)
    assert wrong <= 0.05 + band(0.05, 500)


def test_a_regime_that_was_never_visited_is_not_covered_and_the_drift_alarm_catches_it() -> None:
    """Calibrated cool, driven hot: every bound is too short, whatever its confidence. The alarm needs a few seconds."""
    cool = autoregressive(0.0, n=300, runs=500, seed=8)
    hot = 1.3 * autoregressive(0.0, n=300, runs=1, seed=9)[0]
    issued, wrong, _ = covered(cool, 1.3 * math.exp(0.05 * NORMAL_P99))
    assert wrong == issued > 0.9
    named = name_bound(cool[0], wanted=0.99, confidence=CONFIDENCE)  # type: ignore[arg-type]
    assert named is not None
    drift, requests = Drift(), 0
    for latency in hot:
        requests += 1
        drift = drift.after(exceeded=bool(latency > named.score), alpha=0.01, lag=named.dependence.lag, alarm_at=1.8e7)
        if drift.alarmed:
            break
    assert drift.alarmed
    assert requests < 25
