"""How late the guard's wake-ups are: a histogram of fixed size, cheap enough for every tick. Nanoseconds."""

from __future__ import annotations

BIN_NS = 50_000
BINS = 1_000
"""50 µs wide, up to 50 ms; whatever is later counts in the last bin, whose edge is ``max_ns``."""


class Lateness:
    """Counts of wake-ups by lateness."""

    def __init__(self) -> None:
        self._counts = [0] * BINS
        self.count = 0
        self.max_ns = 0

    def note(self, lateness_ns: int) -> None:
        self._counts[min(BINS - 1, lateness_ns // BIN_NS)] += 1
        self.count += 1
        self.max_ns = max(self.max_ns, lateness_ns)

    def quantile_ns(self, fraction: float) -> int:
        """The upper edge of the bin that holds this quantile; 0 before the first wake-up."""
        target, seen = fraction * self.count, 0
        for index, count in enumerate(self._counts):
            seen += count
            if count and seen >= target:
                return self.max_ns if index == BINS - 1 else min(self.max_ns, (index + 1) * BIN_NS)
        return 0
