"""The scripts that look at a running guard: the trend of its memory, and how late it wakes."""

from __future__ import annotations

import random

import pytest
from guard_memory import TICK_MS, trend, watch
from tick_lateness import measure, quantile_us

ARENA_KB = 1_024  # what Python takes at a time


def looks(*, leak_kb: float, noise_kb: float = 0.0, seed: int = 1) -> list[tuple[int, int]]:
    """Four hundred looks, fifty cycles apart, after a warm-up that grows."""
    chance = random.Random(seed)
    warm = [min(index, 30) * 100 for index in range(400)]
    return [
        (50 * index, round(30_000 + warm[index] + leak_kb * index * 50 / 1_000 + chance.gauss(0, noise_kb)))
        for index in range(400)
    ]


def test_the_warm_up_is_no_leak():
    seen = trend(looks(leak_kb=0))
    assert seen.flat
    assert seen.slope_kb == 0
    assert (seen.first_kb, seen.last_kb) == (33_000, 33_000)


def test_noise_is_flat_and_a_leak_in_it_is_not():
    assert trend(looks(leak_kb=0, noise_kb=300)).flat
    leaking = trend(looks(leak_kb=100, noise_kb=300))
    assert not leaking.flat
    assert leaking.slope_kb == pytest.approx(100, abs=3 * leaking.noise_kb)


def test_a_leak_by_whole_arenas_shows():
    stepped = [(cycle, kb // ARENA_KB * ARENA_KB) for cycle, kb in looks(leak_kb=500)]
    assert not trend(stepped).flat


def test_too_few_looks_are_refused():
    with pytest.raises(ValueError, match="too few"):
        trend(looks(leak_kb=0)[:20])


def test_a_quantile_of_cyclictests_histogram():
    assert quantile_us({"9": 1, "10": 98, "100": 1}, 0.5) == 10
    assert quantile_us({"9": 1, "10": 98, "100": 1}, 0.999) == 100


@pytest.mark.slow
def test_two_thousand_cycles_leave_the_guards_memory_where_it_was():
    """Two arenas may be taken by chance; 1.2 kB kept per cycle, a fraction of a record, would take a third."""
    seen = trend(watch(2_000))
    assert seen.last_kb - seen.first_kb <= 2 * ARENA_KB


@pytest.mark.slow
@pytest.mark.parametrize("real_time", [True, False])
def test_lateness_is_measured_with_and_without_permission(real_time):
    """What it is, a shared machine does not tell."""
    rows = measure(seconds=1, tick_ms=4 * TICK_MS, real_time=real_time, loaded=True)
    assert rows[0]["who"] == "guard"
    assert 0 <= rows[0]["p50_us"] <= rows[0]["p99_us"] <= rows[0]["max_us"]
    assert real_time or rows[0]["scheduling"].startswith("normal priority")
