"""What the guard's process asks of the operating system so that it wakes on time, and how late it wakes all the same.

Each request may be refused; ``RealTime`` says what was granted and why not. Linux only; durations in nanoseconds.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
from dataclasses import dataclass
from pathlib import Path

from edgeguard.clock import NS_PER_MS, Clock

FIFO_PRIORITY = 50
"""Above ordinary tasks, below the kernel's own threaded interrupts (50 and up on PREEMPT_RT win by being first)."""

MCL_CURRENT_AND_FUTURE = 1 | 2  # <sys/mman.h>
CAP_IPC_LOCK = 14  # <linux/capability.h>; to whoever has it no limit applies

_LATENESS_PROBES = 150
_PROBE_NS = 2 * NS_PER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTime:
    """What was granted. The texts are for people."""

    fifo: bool
    scheduling: str
    memory: str


def request_real_time() -> RealTime:
    """Ask for FIFO priority (not inherited) and locked memory; switch cyclic garbage collection off."""
    gc.collect()
    gc.freeze()
    gc.disable()
    fifo, scheduling = _request_fifo()
    return RealTime(fifo=fifo, scheduling=scheduling, memory=_lock_memory())


def measure_reserve_ns(clock: Clock, *, fifo: bool, tick_ns: int) -> int:
    """Twice the worst lateness of 150 wake-ups made now, at most a tick; at least 1 ms with FIFO priority, else 4 ms.

    Call it while the worker loads its model, so that the machine is under the load it will have. The factor of two and
    the floors are margins for what 150 wake-ups cannot show; the decision itself does not rest on them: a wake-up that
    is later still is counted, and is the cause ``guard overrun`` when it exceeds a tick. So more than a tick would be
    held back for nothing: one long pause at the start would leave the model no time for as long as the guard runs.
    """
    worst_ns = 0
    for _ in range(_LATENESS_PROBES):
        due_ns = clock.now_ns() + _PROBE_NS
        clock.sleep_until_ns(due_ns)
        worst_ns = max(worst_ns, clock.now_ns() - due_ns)
    return max(min(2 * worst_ns, tick_ns), NS_PER_MS if fifo else 4 * NS_PER_MS)


def _request_fifo() -> tuple[bool, str]:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(FIFO_PRIORITY))
    except OSError as error:
        return False, f"normal priority ({error.strerror}; allow it with LimitRTPRIO={FIFO_PRIORITY} or CAP_SYS_NICE)"
    return True, f"FIFO {FIFO_PRIORITY}"


def _lock_memory() -> str:
    """All of it, or nothing: under a limit the lock may be granted now, and what is allocated later be refused."""
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if most != resource.RLIM_INFINITY and not _is_capable(CAP_IPC_LOCK):
        return f"not locked (at most {most >> 10} kB may be; allow it with LimitMEMLOCK=infinity)"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT_AND_FUTURE) == 0:
        return "locked"
    return f"not locked ({os.strerror(ctypes.get_errno())}; allow it with LimitMEMLOCK=infinity)"


def _is_capable(capability: int) -> bool:
    status = Path("/proc/self/status").read_bytes()
    effective = next(line for line in status.splitlines() if line.startswith(b"CapEff:"))
    return bool(int(effective.split()[1], 16) >> capability & 1)
