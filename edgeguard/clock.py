"""The one place where time is read: nanoseconds of the monotonic clock, and the boot-time clock beside it.

Logic never reads a clock; it is handed ``now_ns``. Wall time is a label for people and is never compared.
``FakeClock`` is a working clock for tests and simulations: time moves only when it is told to.
"""

from __future__ import annotations

import calendar
import time
from typing import Protocol

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

_ISO = "%Y-%m-%dT%H:%M:%SZ"


class Clock(Protocol):
    """What a caller may know of time."""

    def now_ns(self) -> int:
        """Monotonic time in nanoseconds; comparable across the processes of one boot."""

    def boottime_ns(self) -> int:
        """Like ``now_ns``, but it also runs while the machine is suspended."""

    def sleep_until_ns(self, when_ns: int) -> None:
        """Return at ``when_ns`` or as soon after it as the machine allows."""


class SystemClock:
    """CLOCK_MONOTONIC and CLOCK_BOOTTIME of this machine."""

    def now_ns(self) -> int:
        return time.monotonic_ns()

    def boottime_ns(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def sleep_until_ns(self, when_ns: int) -> None:
        remaining_ns = when_ns - time.monotonic_ns()
        if remaining_ns > 0:
            time.sleep(remaining_ns / NS_PER_S)


class FakeClock:
    """A clock that stands still until ``advance_ns`` or ``sleep_until_ns`` moves it."""

    def __init__(self, *, start_ns: int = NS_PER_S) -> None:
        self._now_ns = start_ns
        self._suspended_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    def boottime_ns(self) -> int:
        return self._now_ns + self._suspended_ns

    def sleep_until_ns(self, when_ns: int) -> None:
        self._now_ns = max(self._now_ns, when_ns)

    def advance_ns(self, by_ns: int) -> None:
        """Let ``by_ns`` of time pass."""
        if by_ns < 0:
            raise ValueError(f"a monotonic clock does not go back (by_ns={by_ns})")
        self._now_ns += by_ns

    def suspend_ns(self, for_ns: int) -> None:
        """Suspend the machine: boot time passes, monotonic time does not."""
        self._suspended_ns += for_ns


def boottime_offset_ns(clock: Clock, *, known_ns: int) -> int:
    """By how much boot time is ahead of monotonic time: ``known_ns``, as long as two readings allow it.

    Between any two readings the process may be set aside for as long as the machine likes: that is no suspend.
    """
    before_ns, boottime_ns, after_ns = clock.now_ns(), clock.boottime_ns(), clock.now_ns()
    return min(max(known_ns, boottime_ns - after_ns), boottime_ns - before_ns)


def ms_from_ns(value_ns: int) -> float:
    """Milliseconds, for people and files."""
    return value_ns / NS_PER_MS


def ns_from_ms(value_ms: float) -> int:
    """Nanoseconds, rounded to the nearest."""
    return round(value_ms * NS_PER_MS)


def wall_time_iso() -> str:
    """The date and time as a label (UTC, ISO 8601); never compared, never subtracted."""
    return time.strftime(_ISO, time.gmtime())


def ns_from_iso(label: str) -> int:
    """What ``wall_time_iso`` gave, as nanoseconds of the epoch: for files of programs that know no other time."""
    return calendar.timegm(time.strptime(label, _ISO)) * NS_PER_S
