"""How late the guard wakes: counted without growing, and the reserve that follows from it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgeguard.clock import NS_PER_MS, FakeClock
from edgeguard.runtime.lateness import BIN_NS, BINS, Lateness
from edgeguard.runtime.realtime import measure_reserve_ns


@given(st.lists(st.integers(0, (BINS - 1) * BIN_NS - 1), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_right_to_the_width_of_a_bin_and_never_too_low(latenesses, fraction):
    lateness = Lateness()
    for one in latenesses:
        lateness.note(one)
    exact = sorted(latenesses)[max(0, -(-round(fraction * len(latenesses) * 1e9) // 1_000_000_000) - 1)]
    assert exact <= lateness.quantile_ns(fraction) <= exact + BIN_NS
    assert lateness.max_ns == max(latenesses)


def test_nothing_is_known_before_the_first_wake_up_and_the_worst_is_kept_whole():
    lateness = Lateness()
    assert lateness.quantile_ns(0.99) == 0
    lateness.note(10_000 * NS_PER_MS)
    assert lateness.quantile_ns(0.5) == lateness.max_ns == 10_000 * NS_PER_MS


class LateClock(FakeClock):
    """A machine that wakes so much too late."""

    def __init__(self, late_ns: int) -> None:
        super().__init__()
        self._late_ns = late_ns

    def sleep_until_ns(self, when_ns: int) -> None:
        super().sleep_until_ns(when_ns + self._late_ns)


def test_the_reserve_is_twice_the_worst_lateness_and_larger_without_permission():
    tick_ns = 20 * NS_PER_MS
    assert measure_reserve_ns(LateClock(0), fifo=True, tick_ns=tick_ns) == NS_PER_MS
    assert measure_reserve_ns(LateClock(0), fifo=False, tick_ns=tick_ns) == 4 * NS_PER_MS
    assert measure_reserve_ns(LateClock(7 * NS_PER_MS), fifo=True, tick_ns=tick_ns) == 14 * NS_PER_MS


def test_a_pause_at_the_start_holds_back_no_more_than_a_tick_for_good():
    """A wake-up that is later than a tick is an overrun, with a safe decision of its own."""
    late = LateClock(300 * NS_PER_MS)
    assert measure_reserve_ns(late, fifo=True, tick_ns=20 * NS_PER_MS) == 20 * NS_PER_MS
