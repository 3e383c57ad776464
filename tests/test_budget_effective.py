"""How many of n samples in a row count as independent, for a statement about one percentile."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgeguard.budget.effective import dependence, ljung_box_p


def autoregressive(rho: float, *, n: int, seed: int) -> list[float]:
    value, values = 0.0, []
    for fresh in np.random.default_rng(seed).standard_normal(n) * math.sqrt(1 - rho**2):
        value = rho * value + fresh
        values.append(value)
    return values


def test_independent_samples_all_count() -> None:
    found = [
        dependence(np.random.default_rng(seed).standard_normal(300).tolist(), percentile=0.99) for seed in range(100)
    ]
    assert sum(one.lag == 1 and one.effective_n == 300 for one in found) >= 95


@pytest.mark.parametrize(("rho", "least", "most"), [(0.5, 1.3, 3.5), (0.9, 4, 14), (0.98, 20, 75)])
def test_dependent_samples_count_less_by_what_the_variance_of_the_exceedances_says(
    rho: float, least: float, most: float
) -> None:
    found = dependence(autoregressive(rho, n=40_000, seed=3), percentile=0.99)
    assert least < found.inflation < most
    assert found.effective_n == math.floor(40_000 / found.inflation)
    assert found.lag == math.ceil(found.inflation)


def test_slow_requests_that_come_in_groups_are_found_though_the_body_is_independent() -> None:
    random = np.random.default_rng(5)
    values = random.standard_normal(3_000) * 0.1
    for start in range(100, 3_000, 200):
        values[start : start + 12] += 0.5
    values[1_500] = 100.0  # one huge sample rules the correlation of the samples, not that of the exceedances
    assert dependence(values.tolist(), percentile=0.95).inflation > 5


def test_a_drift_that_never_ends_leaves_hardly_anything_to_count() -> None:
    assert dependence([float(i) for i in range(300)], percentile=0.99).effective_n <= 8


@pytest.mark.parametrize("samples", [[], [1.0], [1.0, 2.0], [2.0] * 300])
def test_nothing_one_or_always_the_same_is_no_dependence(samples: list[float]) -> None:
    found = dependence(samples, percentile=0.99)
    assert (found.lag, found.effective_n) == (1, len(samples))


def test_samples_that_alternate_count_all() -> None:
    assert dependence([1.0, 2.0] * 150, percentile=0.99).lag == 1


def test_the_ljung_box_p_value_is_uniform_when_nothing_depends_and_tiny_when_something_does() -> None:
    independent = [ljung_box_p(np.random.default_rng(seed).standard_normal(400).tolist()) for seed in range(200)]
    assert 0.02 < sum(p < 0.1 for p in independent) / 200 < 0.18
    assert 0.35 < sum(p < 0.5 for p in independent) / 200 < 0.65
    assert ljung_box_p(autoregressive(0.5, n=400, seed=1)) < 1e-6
    assert ljung_box_p([1.0, 2.0]) == 1.0


@pytest.mark.parametrize("samples", [[0.1 * (i * i % 7) for i in range(10)], [math.sin(i * i) for i in range(60)]])
def test_the_ljung_box_p_value_is_that_of_the_definition(samples: list[float]) -> None:
    values = np.array(samples) - np.mean(samples)
    n, lags = len(values), min(20, len(values) // 5)
    rho = [float(values[:-lag] @ values[lag:] / (values @ values)) for lag in range(1, lags + 1)]
    statistic = n * (n + 2) * sum(one**2 / (n - lag) for lag, one in enumerate(rho, 1))
    drawn = np.random.default_rng(1).chisquare(lags, 200_000)
    assert ljung_box_p(samples) == pytest.approx(float(np.mean(drawn > statistic)), abs=0.01)
