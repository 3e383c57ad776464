"""What a worker's process settles about itself before it runs: when to die, and how much it may claim. Linux, stdlib.

``settle_as_worker`` runs between fork and exec. What the system does not grant there is left as it was, because a
worker with a wrong out-of-memory score is still a worker. Dying with the parent is the exception: a refusal ends the
child, because a model that outlives its guard would hold the cores and the memory of the next one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

OOM_SCORE_ADJ = 500
"""Of -1000 to 1000 (proc(5)): when memory runs out, the worker goes before anything else of the robot's."""

HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""In the environment of a worker from its first instruction on: memory in pages of 2 MB, where the kernel gives them to
who asks (glibc from 2.35 does; to another it means nothing). A pass reads the whole model, which is 25,000 of the small
ones: a command took 0.94 of the time (95 % interval 0.93 to 0.95, 110 pairs), a pass of two tokens 0.81."""

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(*, parent_pid: int) -> None:
    """Have the kernel kill this process when the thread that started it ends; leave now if that has happened already.

    Raises ``OSError`` when the kernel refuses.
    """
    if _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")
    if os.getppid() != parent_pid:
        os._exit(1)


def settle_as_worker(*, parent_pid: int) -> None:
    """Die with the parent, at ordinary priority even if that is a real-time one, and first when memory runs out."""
    die_with_parent(parent_pid=parent_pid)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE_ADJ))
