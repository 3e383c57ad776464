"""The price of a pass: monotone, through the medians, and that of several beyond the largest that was measured."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.budget import PassCost, PassTimes
from edgeguard.budget.cost import NEAREST, median

MS = 1_000_000


def _row(k: int, *elapsed_ms: float, p: int = 100) -> PassTimes:
    return PassTimes(k=k, p=p, elapsed_ns=tuple(round(ms * MS) for ms in elapsed_ms))


SWEEP = [_row(2, 11.0, 11.5, 40.0), _row(4, 16.0), _row(8, 28.0), _row(16, 50.0), _row(32, 93.0), _row(64, 190.0)]


@pytest.mark.parametrize(
    ("k", "ms"),
    [(2, 11.5), (4, 16.0), (3, 13.75), (12, 39.0), (64, 190.0), (1, 11.5)],
)
def test_a_price_is_the_median_at_a_measured_size_and_on_the_line_between(k: int, ms: float) -> None:
    assert PassCost.fit(SWEEP).price_ns(k, 100) == round(ms * MS)


def test_beyond_the_largest_size_there_are_several_passes_each_behind_the_one_before() -> None:
    cost = PassCost.fit([*SWEEP, _row(64, 194.0, p=200), _row(2, 15.5, p=200)])
    assert cost.per_cached_ns == pytest.approx(0.04 * MS)
    passes = [(64, 100), (64, 164), (22, 228)]
    assert cost.price_ns(150, 100) == sum(cost.price_ns(k, p) for k, p in passes)
    assert cost.price_ns(128, 100) == pytest.approx(2 * cost.price_ns(64, 100) + 64 * 0.04 * MS)


@pytest.mark.parametrize(
    ("k", "price_ns"), [(1, 20), (2, 20), (3, 50), (8, 50), (9, 80), (16, 80), (17, 80 + 20), (32, 160), (40, 210)]
)
def test_where_passes_have_no_other_sizes_the_price_is_the_next_ones_or_that_of_several(k: int, price_ns: int) -> None:
    sweep = [PassTimes(k=size, p=10, elapsed_ns=(took,)) for size, took in ((2, 20), (8, 50), (16, 80))]
    assert PassCost.fit(sweep, stepped=True).price_ns(k, 10) == price_ns


def test_one_measured_size_prices_the_others_in_proportion() -> None:
    assert PassCost.fit([_row(10, 20.0)]).price_ns(20, 100) == 40 * MS


def test_a_longer_pass_that_was_measured_cheaper_shares_the_price_of_its_neighbours() -> None:
    cost = PassCost.fit([_row(2, 10.0), _row(4, 20.0), _row(8, 16.0), _row(16, 40.0)])
    assert cost.prices_ns == (10 * MS, 18 * MS, 18 * MS, 40 * MS)


def test_the_slope_in_cached_tokens_comes_from_pairs_of_equal_size() -> None:
    cost = PassCost.fit([_row(2, 10.0, p=0), _row(2, 14.0, p=200), _row(8, 30.0, p=0), _row(8, 34.0, p=200)])
    assert cost.per_cached_ns == pytest.approx(20_000)
    assert cost.price_ns(2, 100) == 12 * MS
    assert cost.price_ns(8, 400) == 38 * MS


def test_a_cache_that_seems_to_make_passes_cheaper_makes_them_no_cheaper() -> None:
    cost = PassCost.fit([_row(2, 10.0, p=0), _row(2, 9.0, p=200)])
    assert cost.per_cached_ns == 0.0


def test_passes_of_real_requests_set_the_level_near_their_size_and_the_sweep_keeps_its_shape() -> None:
    """After a rest the first pass, a large one, takes half as long again; the small ones behind it do not."""
    first = [_row(k, *[1.5 * ms] * NEAREST, p=100) for k, ms in ((30, 87.625), (32, 93.0))]
    then = [_row(2, *[11.5] * NEAREST, p=130), _row(4, *[16.0] * NEAREST, p=132)]
    cost = PassCost.fit(SWEEP, observed=[*first, *then])
    assert [round(price / MS, 2) for price in cost.prices_ns] == [11.5, 16.0, 28.0, 50.0, 139.5, 285.0]
    assert cost.per_cached_ns == 0.0  # a request's passes say nothing about the slope


def test_one_interrupted_pass_of_a_request_moves_nothing() -> None:
    observed = [_row(2, *[11.5] * NEAREST), _row(32, *[93.0] * NEAREST), _row(6, 500.0)]
    assert PassCost.fit(SWEEP, observed=observed) == PassCost.fit(SWEEP)


def test_a_request_costs_its_passes_and_what_is_beside_them() -> None:
    cost = PassCost.fit(SWEEP).with_constant(2 * MS)
    assert cost.passes_ns([(32, 100), (2, 132), (2, 134)]) == (2 + 93 + 11.5 + 11.5) * MS


def test_without_a_measured_pass_there_is_no_cost() -> None:
    with pytest.raises(ValueError, match="at least one"):
        PassCost.fit([PassTimes(k=2, p=0, elapsed_ns=())])


@given(
    rows=st.lists(
        st.builds(
            PassTimes,
            k=st.integers(1, 64),
            p=st.integers(0, 500),
            elapsed_ns=st.lists(st.integers(1, 10**9), min_size=1, max_size=5).map(tuple),
        ),
        min_size=1,
        max_size=10,
    ),
    k=st.integers(1, 200),
    p=st.integers(0, 1_000),
    more=st.integers(1, 200),
)
@settings(max_examples=150, deadline=None)
def test_more_new_or_more_cached_tokens_never_cost_less(rows: list[PassTimes], k: int, p: int, more: int) -> None:
    cost = PassCost.fit(rows)
    assert 1 <= cost.price_ns(k, p) <= cost.price_ns(k + more, p)
    assert cost.price_ns(k, p) <= cost.price_ns(k, p + more)


def test_the_fit_finds_the_curve_behind_noisy_and_interrupted_passes() -> None:
    draw = random.Random(4)

    def measured(k: int) -> float:
        interrupted = 5.0 if draw.random() < 0.1 else 1.0
        return (8 + 2.8 * k) * draw.gauss(1, 0.03) * interrupted

    cost = PassCost.fit([_row(k, *[measured(k) for _ in range(15)]) for k in (2, 3, 5, 9, 15, 24, 40, 64)])
    for k in range(2, 65):
        assert cost.price_ns(k, 100) == pytest.approx((8 + 2.8 * k) * MS, rel=0.06)


@pytest.mark.parametrize(("values", "middle"), [([3], 3), ([1, 9], 5), ([5, 1, 9], 5), ([4, 1, 2, 3], 2.5)])
def test_the_median(values: list[float], middle: float) -> None:
    assert median(values) == middle


def test_no_pass_is_free_however_steep_a_disturbed_sweep_was() -> None:
    sweep = [PassTimes(k=2, p=p, elapsed_ns=(p * 1_000_000,)) for p in (1, 50, 100)]
    cost = PassCost.fit(sweep, observed=[PassTimes(k=2, p=100, elapsed_ns=(2_000_000,) * 20)])
    assert cost.price_ns(2, 100) == 2_000_000
    assert cost.price_ns(2, 0) == 200_000
