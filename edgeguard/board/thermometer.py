"""One look after the other at a board: reads its sensors, and asks the fixed kernel where a clock file is not enough.

A look takes a few milliseconds, and a few more on one core while a clock is capped. Wherever latency is promised, that
is the business of another process (``edgeguard.runtime.board_watch``).
"""

from __future__ import annotations

from edgeguard.board.board import Board
from edgeguard.board.kernel import FixedKernel
from edgeguard.board.level import LevelWatch
from edgeguard.board.reading import Reading
from edgeguard.clock import NS_PER_MS, Clock
from edgeguard.types import BoardState

KERNEL_NS = 5 * NS_PER_MS
"""A dozen pieces of work: enough for a quartile, too little to disturb a pass."""


class Thermometer:
    """``reading`` is the last look's, for whoever wants more than its level."""

    def __init__(
        self, board: Board, *, clock: Clock, soaked_c: float | None = None, kernel: FixedKernel | None = None
    ) -> None:
        self._board = board
        self._clock = clock
        self._watch = LevelWatch(soaked_c=soaked_c)
        self._kernel = kernel or FixedKernel(clock=clock, cores=1)
        self._kernel.slowness(for_ns=KERNEL_NS)
        self.reading = Reading(read_ns=clock.now_ns(), values=())

    def look(self) -> BoardState:
        """Read everything once, and say what it means. Never raises."""
        self.reading = self._board.read(self._clock.now_ns())
        slowness = self._kernel.slowness(for_ns=KERNEL_NS) if self._watch.capped(self.reading) else None
        return self._watch.see(self.reading, slowness=slowness)
