"""A tiny piece of work that never changes, timed: is this machine free, or is somebody else computing on it?

Clock files lie and load averages lag; how long known work takes does neither. The work (PBKDF2, in C and without the
GIL; a third of a millisecond on a recent core) runs on all cores at once, a thread bound to each, so that it fits in
nobody's shadow and not in its own: two threads left alone share a core for the length of a window (measured: ×2). Most
pieces are too short to be interrupted even on a busy machine, so the lower quartile of a window is what the work needs,
and the least one seen is the kernel's own best. The mean of all pieces over that best is the busy factor: 1 when free,
2 when every core is shared with one other, 4.7 when it is that bad. It rises too when the silicon slows itself, but
then the quartile does as well: that one over the best is the slowness. (The quartile, not the least piece: with two
threads on one core, that one ran alone.) Nanoseconds; time is the ``Clock``'s.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import threading
from collections.abc import Callable

from edgeguard.clock import Clock

_ITERATIONS = 2_000


def _work() -> None:
    hashlib.pbkdf2_hmac("sha256", b"edgeguard", b"edgeguard", _ITERATIONS)


class FixedKernel:
    """Times the kernel on ``cores`` threads (default: as many as this process may use), against its own best."""

    def __init__(self, *, clock: Clock, cores: int | None = None, work: Callable[[], None] = _work) -> None:
        self._clock = clock
        self._cores = len(os.sched_getaffinity(0)) if cores is None else cores
        self._work = work
        self.best_ns: int | None = None

    def busy_factor(self, *, for_ns: int) -> float:
        """Keep every core at it for so long; the mean time of a piece over the best that this object has seen."""
        return self._time(for_ns)[0]

    def slowness(self, *, for_ns: int) -> float:
        """What the work needs now over the best: above 1 when the silicon is slower, hardly when others compute too."""
        return self._time(for_ns)[1]

    def _time(self, for_ns: int) -> tuple[float, float]:
        """The mean and the lower quartile of the pieces, over the best."""
        until_ns = self._clock.now_ns() + for_ns
        elapsed_ns: list[int] = []
        processors = itertools.islice(itertools.cycle(sorted(os.sched_getaffinity(0))), self._cores)
        threads = [
            threading.Thread(target=self._time_pieces, args=(processor, until_ns, elapsed_ns))
            for processor in processors
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        quartile_ns = max(1, sorted(elapsed_ns)[len(elapsed_ns) // 4])
        self.best_ns = quartile_ns if self.best_ns is None else min(self.best_ns, quartile_ns)
        return sum(elapsed_ns) / (len(elapsed_ns) * self.best_ns), quartile_ns / self.best_ns

    def _time_pieces(self, processor: int, until_ns: int, elapsed_ns: list[int]) -> None:
        """One thread's pieces, at least one, without a gap between them: waiting for a core is what we want to see."""
        with contextlib.suppress(OSError):  # a processor that has just gone
            os.sched_setaffinity(0, {processor})  # of this thread only
        began_ns = self._clock.now_ns()
        while True:
            self._work()
            ended_ns = self._clock.now_ns()
            elapsed_ns.append(ended_ns - began_ns)
            if ended_ns >= until_ns:
                return
            began_ns = ended_ns
