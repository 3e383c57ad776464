"""One request of a calibration as it is kept: what it took, what it did, how hot the board was. Data only.

It travels as a flat JSON object, so that a calibration that was cut off goes on with what it had. Durations are
nanoseconds; ``at_ns`` counts from the start of the run, over all interruptions.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeguard.board.level import HOT_MARGIN_C
from edgeguard.types import Answer, Pass, ThermalLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The board beside a request, with the level that it was at as far as was known then; ``None`` where nothing can
    be read."""

    temperature_c: float | None = None
    clock_mhz: float | None = None
    level: ThermalLevel = ThermalLevel.NOMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """From the scheduled release to the answer in our hands. ``dearest_ns`` is the bound that the worker stated (with
    prices and the score 1: the price of its dearest answer). ``soaked``: the board had been heated before.
    ``worker`` counts the processes of the model."""

    at_ns: int
    latency_ns: int
    passes: tuple[Pass, ...]
    ttft_ns: int
    dearest_ns: int | None
    rung: str = ""
    drafted: bool = False
    soaked: bool = False
    worker: int = 0
    look: Look = Look()

    @classmethod
    def of(cls, answer: Answer, *, at_ns: int, latency_ns: int, look: Look, soaked: bool, worker: int) -> Sample:
        """Of an answer that made at least one pass."""
        return cls(
            at_ns=at_ns,
            latency_ns=latency_ns,
            passes=answer.passes,
            ttft_ns=answer.ttft_ns or 0,
            dearest_ns=answer.bound_ns,
            rung=answer.rung,
            drafted=answer.drafted_tokens > 0,
            soaked=soaked,
            worker=worker,
            look=look,
        )

    @property
    def throttled(self) -> bool:
        return self.look.level is ThermalLevel.THROTTLED

    def level(self, *, soaked_c: float | None, observed: bool) -> ThermalLevel:
        """The level that it counts for, as the guard would see it: hot is near the ``soaked_c`` at the end of the soak.
        Where no sensor tells, what came after the soak is hot."""
        if self.throttled or (observed and soaked_c is None):
            return self.look.level
        if not observed:
            return ThermalLevel.HOT if self.soaked else ThermalLevel.NOMINAL
        hot = soaked_c is not None and (self.look.temperature_c or -273.0) >= soaked_c - HOT_MARGIN_C
        return ThermalLevel.HOT if hot else ThermalLevel.NOMINAL
