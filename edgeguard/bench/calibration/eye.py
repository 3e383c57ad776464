"""Looks at the board while it is measured, and remembers whether there was anything to see."""

from __future__ import annotations

from typing import Protocol

from edgeguard.bench.calibration.sample import Look
from edgeguard.board import Kind, Thermometer


class Eye(Protocol):
    """``observed``: a sensor has ever said how hot it is."""

    observed: bool

    def look(self) -> Look: ...


class BoardEye:
    """This machine's own."""

    def __init__(self, thermometer: Thermometer) -> None:
        self._thermometer = thermometer
        self.observed = False

    def look(self) -> Look:
        state = self._thermometer.look()
        self.observed |= state.observed and state.hottest_c is not None
        return Look(
            temperature_c=state.hottest_c,
            clock_mhz=max(self._thermometer.reading.of(Kind.CLOCK).values(), default=None),
            level=state.level,
        )
