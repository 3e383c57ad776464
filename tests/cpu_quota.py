"""A limit on the processor time of one process, as a container or a power manager sets it: two real ways.

``by_the_kernel`` puts the process into a control group of its own (v2's ``cpu.max``, or v1's ``cpu.cfs_quota_us``),
where this user may make one; ``NoQuotaError`` says why not. ``by_signals`` works anywhere: as cpulimit does, it looks
at the processor time that was spent, and stops the process until so much is earned again. Neither saves up: a process
that has slept is not faster for it. Shares are of one processor; times are nanoseconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

MOUNTS = Path("/proc/self/mounts")
PERIOD_US = 20_000
LEAST_QUOTA_US = 1_000  # the kernel's own limit
LOOK_S = 0.001
NS_PER_S = 1_000_000_000


class NoQuotaError(Exception):
    """The kernel does not let this user limit a process."""


class Quota(Protocol):
    """While it holds, the process gets at most ``share`` of one processor."""

    def __call__(self, pid: int, share: float) -> AbstractContextManager[None]: ...


def cpu_time_ns(pid: int) -> int:
    """What the process has spent so far, all threads: its clock, as ``clock_getcpuclockid`` makes it."""
    return time.clock_gettime_ns(~pid << 3 | 2)


@contextmanager
def by_the_kernel(pid: int, share: float) -> Iterator[None]:
    period_us = max(PERIOD_US, round(LEAST_QUOTA_US / share))
    quota_us = round(share * period_us)
    with contextlib.ExitStack() as undo:
        try:
            home, group, limits = _group(f"edgeguard-test-{os.getpid()}", quota_us, period_us)
            undo.callback(group.rmdir)
            for file, value in limits.items():
                (group / file).write_text(value)
            (group / "cgroup.procs").write_text(str(pid))
            undo.callback(_leave, pid, home)
        except OSError as error:
            raise NoQuotaError(f"no control group with a quota can be made here: {error}") from error
        yield


@contextmanager
def by_signals(pid: int, share: float) -> Iterator[None]:
    limiter = subprocess.Popen([sys.executable, __file__, str(pid), repr(share)], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        limiter.terminate()
        limiter.wait()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def _group(name: str, quota_us: int, period_us: int) -> tuple[Path, Path, dict[str, str]]:
    """The group that the process goes back to, a new one, and the files that limit it."""
    for line in MOUNTS.read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        root = Path(place)
        if kind == "cgroup" and "cpu" in options.split(","):
            limits = {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us)}
        elif kind == "cgroup2" and "cpu" in (root / "cgroup.controllers").read_text().split():
            (root / "cgroup.subtree_control").write_text("+cpu")
            limits = {"cpu.max": f"{quota_us} {period_us}"}
        else:
            continue
        (root / name).mkdir()
        return root, root / name, limits
    raise NoQuotaError("no control group here limits the processor")


def _leave(pid: int, home: Path) -> None:
    with contextlib.suppress(ProcessLookupError):
        (home / "cgroup.procs").write_text(str(pid))


def _limit(pid: int, share: float) -> None:
    """Until it is ended: at most ``LOOK_S`` worth of unspent time is kept, and what was overspent is waited for."""
    seen_ns, spent_ns = time.monotonic_ns(), cpu_time_ns(pid)
    earned_ns, most_ns = 0.0, share * LOOK_S * NS_PER_S
    while True:
        time.sleep(LOOK_S)
        now_ns, now_spent_ns = time.monotonic_ns(), cpu_time_ns(pid)
        earned_ns = min(most_ns, earned_ns + share * (now_ns - seen_ns)) - (now_spent_ns - spent_ns)
        seen_ns, spent_ns = now_ns, now_spent_ns
        os.kill(pid, signal.SIGSTOP if earned_ns < 0 else signal.SIGCONT)


if __name__ == "__main__":
    with contextlib.suppress(ProcessLookupError):
        _limit(int(sys.argv[1]), float(sys.argv[2]))
