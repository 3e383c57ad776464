"""Order statistics: the floors that the literature gives, the exact tail, and coverage by simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeguard.budget.bound import (
    binomial_tail,
    floor_n,
    highest_percentile,
    miss_rate_bound,
    order_bound,
    rank,
)
from edgeguard.budget.effective import dependence, thin

FLOORS = [(0.5, 5), (0.9, 29), (0.95, 59), (0.98, 149), (0.99, 299), (0.999, 2995)]


@pytest.mark.parametrize(("percentile", "n"), FLOORS)
def test_the_floor_is_the_least_n_whose_largest_sample_bounds_the_percentile(percentile: float, n: int) -> None:
    assert floor_n(percentile=percentile, confidence=0.95) == n
    assert rank(n, percentile=percentile, confidence=0.95) == 1
    assert rank(n - 1, percentile=percentile, confidence=0.95) == 0


@pytest.mark.parametrize(
    ("n", "r"),
    [(299, 1), (472, 1), (473, 2), (627, 2), (628, 3), (773, 4), (2995, 21)],  # tables of Wilks' tolerance limits
)
def test_more_samples_let_more_of_the_largest_be_passed_over(n: int, r: int) -> None:
    assert rank(n, percentile=0.99, confidence=0.95) == r


@pytest.mark.parametrize(
    ("n", "wanted", "named"),
    [(4, 0.999, None), (5, 0.999, 0.5), (59, 0.999, 0.95), (148, 0.999, 0.95), (149, 0.999, 0.98), (299, 0.999, 0.99),
     (2994, 0.999, 0.998), (2995, 0.999, 0.999), (100_000, 0.999, 0.999), (100_000, 0.97, 0.97), (50, 0.97, 0.9),
     (100_000, 1.0, 0.9999)],
)  # fmt: skip
def test_the_highest_percentile_is_one_that_people_quote_and_none_above_what_is_wanted(
    n: int, wanted: float, named: float | None
) -> None:
    assert highest_percentile(n, confidence=0.95, wanted=wanted) == named


@pytest.mark.parametrize(
    ("misses", "n", "rate"),
    [
        (0, 299, 0.009969),
        (0, 2995, 0.00099976),
        (1, 299, 0.015773),
        (3, 1000, 0.0077352),
        (10, 500, 0.033688),
        (5, 5, 1.0),
    ],
)
def test_the_miss_rate_is_clopper_and_pearsons_upper_limit(misses: int, n: int, rate: float) -> None:
    assert miss_rate_bound(misses, n, confidence=0.95) == pytest.approx(rate, rel=2e-3)


@given(n=st.integers(1, 60), data=st.data(), percent=st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_the_tail_is_the_exact_one(n: int, data: st.DataObject, percent: int) -> None:
    x = data.draw(st.integers(-1, n))
    rate = Fraction(percent, 100)
    exact = sum(math.comb(n, i) * rate**i * (1 - rate) ** (n - i) for i in range(x + 1))
    assert binomial_tail(x, n, percent / 100) == pytest.approx(float(exact), abs=1e-12)


def test_the_tail_of_very_many_samples_does_not_underflow() -> None:
    assert binomial_tail(1_000, 1_000_000, 0.001) == pytest.approx(0.5084, abs=1e-3)


@given(misses=st.integers(0, 30), n=st.integers(31, 3_000), confidence=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
@settings(max_examples=40, deadline=None)
def test_the_miss_rate_bound_is_where_the_tail_meets_the_confidence(misses: int, n: int, confidence: float) -> None:
    rate = miss_rate_bound(misses, n, confidence=confidence)
    assert misses / n < rate < 1
    assert binomial_tail(misses, n, rate) == pytest.approx(1 - confidence, abs=1e-6)


@given(
    samples=st.lists(st.floats(0.1, 10), min_size=59, max_size=200),
    worse=st.floats(0.1, 10),
    percentile=st.sampled_from([0.5, 0.9, 0.95]),
)
@settings(max_examples=60, deadline=None)
def test_a_bound_is_a_sample_and_falls_with_the_percentile(
    samples: list[float], worse: float, percentile: float
) -> None:
    bound = order_bound(samples, percentile=percentile, confidence=0.95)
    assert bound is not None
    assert bound in samples
    strictest = order_bound(samples, percentile=0.95, confidence=0.95)
    assert strictest is not None
    assert strictest >= bound
    raised = order_bound([max(one, worse) for one in samples], percentile=percentile, confidence=0.95)
    assert raised is not None
    assert raised >= bound


def test_too_few_samples_give_no_bound_instead_of_a_guess() -> None:
    assert order_bound([1.0] * 298, percentile=0.99, confidence=0.95) is None


Series = NDArray[np.float64]


def _autoregressive(random: np.random.Generator, *, n: int, rho: float) -> Series:
    """AR(1) with unit variance; the marginal is the standard normal whatever rho is."""
    noise = random.standard_normal(n) * math.sqrt(1 - rho**2)
    values = np.empty(n)
    value = random.standard_normal()
    for i, fresh in enumerate(noise):
        value = rho * value + fresh
        values[i] = value
    return values


@pytest.mark.parametrize(
    ("rho", "n", "runs", "issued_least"),
    [(0.0, 300, 400, 0.92), (0.5, 1_500, 150, 0.8), (0.9, 9_000, 120, 0.8)],
)
def test_a_bound_is_issued_and_wrong_in_at_most_five_percent_of_calibrations(
    rho: float, n: int, runs: int, issued_least: float
) -> None:
    """The stated confidence, kept also where one slow request is followed by another."""
    random = np.random.default_rng(20_26)
    true_p99 = math.exp(0.3 * 2.3263)
    issued = wrong = 0
    for _ in range(runs):
        scores = np.exp(0.3 * _autoregressive(random, n=n, rho=rho)).tolist()
        bound = order_bound(thin(scores, lag=dependence(scores).lag), percentile=0.99, confidence=0.95)
        issued += bound is not None
        wrong += bound is not None and bound < true_p99
    assert issued / runs >= issued_least
    assert wrong / runs <= 0.05 + 1.64 * math.sqrt(0.05 * 0.95 / runs)  # the simulation's own 95 % band


def test_without_thinning_dependent_samples_would_promise_too_much() -> None:
    random = np.random.default_rng(7)
    wrong = 0
    for _ in range(150):
        scores = _autoregressive(random, n=300, rho=0.9).tolist()
        bound = order_bound(scores, percentile=0.99, confidence=0.95)
        assert bound is not None
        wrong += bound < 2.3263
    assert wrong / 150 > 0.15


def test_mean_plus_three_sigmas_is_no_bound_where_slow_requests_are_rare_and_slow() -> None:
    """Two percent of requests take three times as long: mu + 3 sigma lies below them, the order statistic does not."""
    random = np.random.default_rng(11)
    three_sigmas_wrong = order_wrong = 0
    for _ in range(200):
        scores = np.where(random.random(300) < 0.02, 3.0, 1.0) + 0.01 * random.standard_normal(300)
        bound = order_bound(scores.tolist(), percentile=0.99, confidence=0.95)
        assert bound is not None
        three_sigmas_wrong += scores.mean() + 3 * scores.std() < 2.9
        order_wrong += bound < 2.9
    assert three_sigmas_wrong == 200
    assert order_wrong / 200 <= 0.05
