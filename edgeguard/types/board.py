"""How hot the board is, as whoever watches it says. Data only; temperatures are degrees Celsius.

Levels are ordered, because a level's bound is never below a milder one's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ThermalLevel(IntEnum):
    """One thermal level; ``label`` is what files and people say."""

    NOMINAL = 0
    HOT = 1  # as hot as it was soaked to, at full clocks
    THROTTLED = 2  # the silicon slows itself

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardState:
    """One look at the board. ``observed`` is false where nothing can be read; ``level`` is then the last that was seen.

    ``critical``: a sensor is at its critical trip point. ``read_ns`` is the monotonic time of the reading.
    """

    level: ThermalLevel
    observed: bool
    critical: bool
    hottest_c: float | None
    read_ns: int
    detail: str = ""
