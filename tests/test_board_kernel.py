"""The fixed kernel: its factor is 1 on a free machine and rises with whatever keeps the work waiting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import cycle

import pytest

from edgeguard.board import FixedKernel
from edgeguard.clock import NS_PER_MS, FakeClock, SystemClock


def _kernel(pieces_ms: list[float]) -> FixedKernel:
    """One core, whose pieces of work take these times in turn, for ever."""
    clock = FakeClock()
    times: Iterator[float] = cycle(pieces_ms)

    def work() -> None:
        clock.advance_ns(round(next(times) * NS_PER_MS))

    return FixedKernel(clock=clock, cores=1, work=work)


@pytest.mark.parametrize(
    ("pieces_ms", "factor"),
    [
        ([0.4], 1.0),
        ([0.4, 0.4, 0.4, 3.2], 2.75),  # one piece of four was interrupted
        ([0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 12.24], 4.7),
    ],
)
def test_the_factor_is_the_mean_over_the_best(pieces_ms: list[float], factor: float) -> None:
    assert _kernel(pieces_ms).busy_factor(for_ns=400 * NS_PER_MS) == pytest.approx(factor, rel=0.05)


def test_the_best_is_remembered_so_that_a_slower_machine_shows() -> None:
    speed = [0.4]
    clock = FakeClock()
    kernel = FixedKernel(clock=clock, cores=1, work=lambda: clock.advance_ns(round(speed[0] * NS_PER_MS)))
    assert kernel.busy_factor(for_ns=10 * NS_PER_MS) == 1.0
    speed[0] = 0.8  # throttled, or every piece shares its core
    assert kernel.busy_factor(for_ns=10 * NS_PER_MS) == pytest.approx(2.0)
    assert kernel.best_ns == round(0.4 * NS_PER_MS)


def test_one_lucky_piece_is_no_best() -> None:
    assert _kernel([0.2] + [0.4] * 19).busy_factor(for_ns=200 * NS_PER_MS) == pytest.approx(1.0, rel=0.05)


def test_a_window_shorter_than_a_piece_times_one_piece() -> None:
    assert _kernel([5.0]).busy_factor(for_ns=1) == 1.0


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_on_this_machine_every_core_works_for_the_window(cores: int) -> None:
    clock = SystemClock()
    kernel = FixedKernel(clock=clock, cores=cores)
    began_ns = clock.now_ns()
    factor = kernel.busy_factor(for_ns=20 * NS_PER_MS)
    assert clock.now_ns() - began_ns >= 20 * NS_PER_MS
    assert factor >= 0.9
    assert kernel.best_ns is not None


def test_more_threads_than_cores_is_what_a_busy_machine_looks_like() -> None:
    """Three threads a core: the mean of their pieces is far above what one needs."""
    cores = len(os.sched_getaffinity(0))
    assert FixedKernel(clock=SystemClock(), cores=3 * cores).busy_factor(for_ns=150 * NS_PER_MS) > 1.5
