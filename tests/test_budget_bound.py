"""Order statistics: the floors and ranks that the literature gives, and the exact tail."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.budget.bound import (
    binomial_tail,
    floor_n,
    miss_rate_bound,
    percentiles_from,
    rank,
)

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


def test_what_may_be_named_are_percentiles_that_people_quote_from_the_wanted_one_down() -> None:
    assert percentiles_from(0.995) == [0.995, 0.99, 0.98, 0.95, 0.9]
    assert percentiles_from(0.97) == [0.97, 0.95, 0.9]
    assert percentiles_from(0.5) == [0.5]


@pytest.mark.parametrize("inflation", [1.001, 1.5, 4.0, 20.0])
def test_samples_in_runs_let_fewer_be_passed_over_than_independent_ones_and_more_than_none(inflation: float) -> None:
    n = 20_000
    independent = rank(n, percentile=0.99, confidence=0.95)
    clustered = rank(n, percentile=0.99, confidence=0.95, inflation=inflation)
    assert 0 < clustered <= independent
    if inflation < 1.01:
        assert clustered == pytest.approx(independent, abs=2)


def test_as_many_samples_more_as_the_inflation_says_are_needed_for_the_same_statement() -> None:
    for inflation in (2.0, 10.0):
        enough = math.ceil(299 * inflation)
        assert rank(enough, percentile=0.99, confidence=0.95, inflation=inflation) >= 1


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


@given(n=st.integers(1, 5_000), more=st.integers(0, 500), percentile=st.sampled_from([0.9, 0.95, 0.99]))
@settings(max_examples=60, deadline=None)
def test_the_rank_grows_with_the_samples_and_shrinks_with_the_percentile(n: int, more: int, percentile: float) -> None:
    r = rank(n, percentile=percentile, confidence=0.95)
    assert rank(n + more, percentile=percentile, confidence=0.95) >= r >= rank(n, percentile=0.999, confidence=0.95)
    assert binomial_tail(r - 1, n, 1 - percentile) <= 0.05 < binomial_tail(r, n, 1 - percentile) + 1e-12


@pytest.mark.parametrize(("n", "percentile"), [(0, 0.99), (100, 1.0)])
def test_nothing_bounds_what_nobody_exceeds_and_nothing_follows_from_no_samples(n: int, percentile: float) -> None:
    assert rank(n, percentile=percentile, confidence=0.95) == 0
