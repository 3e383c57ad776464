"""What one look at a board gives: for every sensor a value, or the reason why there is none.

Degrees Celsius, megahertz and watts; a throttle counter gives its events since the last look. No reading is never a
zero. Times are monotonic nanoseconds, handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum


class Kind(str, Enum):
    """What a sensor measures; the value is its unit."""

    TEMPERATURE = "°C"
    CLOCK = "MHz"  # as the clock file has it, which may lie
    CAP = "MHz at most"  # the most that the clock may now be
    COUNTER = "throttling events"  # since the last look; any at all means that the silicon slowed itself
    FLAG = "throttling state"  # above 0 while it slows itself
    POWER = "W"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """``measure`` reads it once, and raises ``OSError`` or ``ValueError`` with the reason when it cannot.

    ``passive_c``: where the kernel begins to slow the silicon; ``critical_c``: where it switches the board off.
    """

    name: str
    kind: Kind
    measure: Callable[[], float]
    passive_c: float | None = None
    critical_c: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One sensor's part of a reading: ``value``, or ``None`` and the ``reason``."""

    sensor: Sensor
    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at every sensor, at ``read_ns``."""

    read_ns: int
    values: tuple[Value, ...]

    def of(self, kind: Kind) -> Mapping[str, float]:
        """The values of one kind that could be read, by their sensors' names."""
        return {one.sensor.name: one.value for one in self.values if one.sensor.kind is kind and one.value is not None}

    @property
    def missing(self) -> tuple[Value, ...]:
        """Those that have no value, each with its reason."""
        return tuple(one for one in self.values if one.value is None)
