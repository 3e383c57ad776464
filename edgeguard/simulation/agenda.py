"""What is still to happen in a simulated world, in its own time: nanoseconds since the start, never backwards."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

Action = Callable[[], None]


class Agenda:
    """Actions in the order of their times; of equal times the one that was entered first."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._entries: list[tuple[int, int, Action]] = []
        self._number = count()

    def at(self, when_ns: int, action: Action) -> None:
        heapq.heappush(self._entries, (max(when_ns, self.now_ns), next(self._number), action))

    def after(self, delay_ns: int, action: Action) -> None:
        self.at(self.now_ns + delay_ns, action)

    @property
    def next_ns(self) -> int | None:
        """When something happens next; ``None`` when nothing will."""
        return self._entries[0][0] if self._entries else None

    def advance(self, until_ns: int) -> None:
        """Let everything happen up to and including ``until_ns``, which is now afterwards."""
        while self._entries and self._entries[0][0] <= until_ns:
            self.now_ns, _, action = heapq.heappop(self._entries)
            action()
        self.now_ns = until_ns
