"""How many samples in a row count as independent."""

from __future__ import annotations

import numpy as np
import pytest

from edgeguard.budget.effective import dependence, thin


def test_independent_samples_all_count() -> None:
    found = [dependence(np.random.default_rng(seed).standard_normal(300).tolist()) for seed in range(50)]
    assert sum(one.lag == 1 and one.effective_n == 300 for one in found) >= 45


@pytest.mark.parametrize(("rho", "lags"), [(0.5, range(3, 7)), (0.9, range(15, 35)), (0.98, range(70, 180))])
def test_the_lag_is_where_the_correlation_has_decayed_to_a_tenth(rho: float, lags: range) -> None:
    random = np.random.default_rng(3)
    value, values = 0.0, []
    for fresh in random.standard_normal(20_000) * np.sqrt(1 - rho**2):
        value = rho * value + fresh
        values.append(value)
    found = dependence(values)
    assert found.lag in lags
    assert found.effective_n == pytest.approx(20_000 / found.lag, abs=1)


def test_slow_requests_that_come_in_groups_are_found_though_the_body_is_independent() -> None:
    """The tail indicator sees what the samples' own correlation, ruled by one huge sample, does not."""
    random = np.random.default_rng(5)
    values = random.standard_normal(3_000) * 0.1
    for start in range(100, 3_000, 200):
        values[start : start + 12] += 0.5
    values[1_500] = 100.0
    assert dependence(values.tolist()).lag > 3


def test_a_drift_that_never_ends_leaves_hardly_anything_to_count() -> None:
    assert dependence([float(i) for i in range(300)]).effective_n <= 4


@pytest.mark.parametrize("samples", [[], [1.0], [2.0] * 300])
def test_nothing_one_or_always_the_same_is_no_dependence(samples: list[float]) -> None:
    assert dependence(samples).lag == 1
    assert dependence(samples).effective_n == len(samples)


def test_samples_that_alternate_count_all() -> None:
    assert dependence([1.0, 2.0] * 150).lag == 1


def test_thinning_keeps_every_lagth_sample_and_the_last() -> None:
    assert list(thin(range(10), lag=3)) == [0, 3, 6, 9]
    assert list(thin(range(9), lag=3)) == [2, 5, 8]
    assert list(thin(range(4), lag=1)) == [0, 1, 2, 3]
