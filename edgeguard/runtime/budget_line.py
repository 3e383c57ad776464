"""Where the time of one decision goes: the budget of a configuration, part by part, for people and programs.

The age is the greatest that the configuration accepts, so that what fits here fits always. Milliseconds, because it is
printed; the guard itself reckons in nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeguard.clock import ms_from_ns
from edgeguard.config import Config
from edgeguard.runtime.serial_wire import command_wire_ns

RESERVE_ASSUMED_NS = 5_000_000
"""Until the guard has measured its own lateness on the machine it runs on; ``status`` shows what it measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """All in milliseconds. ``bound_ms`` is ``None`` without a calibration profile."""

    deadline_ms: float
    age_ms: float
    wire_ms: float
    reserve_ms: float
    bound_ms: float | None

    @property
    def available_ms(self) -> float:
        """What is left for tokenising, passes, parsing and hand-over."""
        return self.deadline_ms - self.age_ms - self.wire_ms - self.reserve_ms

    @property
    def slack_ms(self) -> float | None:
        return None if self.bound_ms is None else self.available_ms - self.bound_ms


def budget_line(config: Config, *, age_ns: int, bound_ns: int | None) -> BudgetLine:
    """The budget for an observation that is ``age_ns`` old when it arrives."""
    reserve_ns = config.timing.reserve_ns
    return BudgetLine(
        deadline_ms=ms_from_ns(config.timing.deadline_ns),
        age_ms=ms_from_ns(age_ns),
        wire_ms=ms_from_ns(command_wire_ns(config)),
        reserve_ms=ms_from_ns(RESERVE_ASSUMED_NS if reserve_ns is None else reserve_ns),
        bound_ms=None if bound_ns is None else ms_from_ns(bound_ns),
    )
