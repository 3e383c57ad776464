"""The ladder of plans of a simulated worker: what each takes and may take, and which one runs.

As the real worker does it (``edgeguard.engine.attempt``): the first plan whose bound fits with the guard's margin, else
the last one that has a bound if it fits as calibrated. One plan alone always runs: a script may have it come late.
Nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat

from edgeguard.clock import NS_PER_MS
from edgeguard.guard.interface import Promise
from edgeguard.types import Request, ThermalLevel, Value


@dataclass(slots=True, kw_only=True)
class Script:
    """What requests take, one after the other, and are answered; ``bounds_ns`` has one for each thermal level that was
    reached, and none where there was no calibration.
    """

    latencies_ns: Iterator[int] = field(default_factory=lambda: repeat(100 * NS_PER_MS))
    values: Mapping[str, Value] = field(default_factory=dict)
    bounds_ns: tuple[int, ...] = ()


class Ladder:
    """``scripts`` of the plans by name, the best first; without plans one, ``""``."""

    def __init__(self, names: tuple[str, ...] = ("",), *, uncalibrated_factor: float | None = None) -> None:
        self.scripts = {name: Script() for name in names}
        self._factor = uncalibrated_factor

    @property
    def promise(self) -> Promise | None:
        """Of a calibration of independent requests, at p99: of each level the bound of the plan that promises most."""
        known = [script.bounds_ns[: len(ThermalLevel)] for script in self.scripts.values() if script.bounds_ns]
        if not known:
            return None
        longest = max(map(len, known))
        bounds_ns = tuple(min(one[level] for one in known if level < len(one)) for level in range(longest))
        return Promise(bounds_ns=bounds_ns, alpha=0.01, lag=1, observed=True)

    def choose(self, request: Request, *, left_ns: int) -> tuple[str, int | None] | None:
        """The plan that runs and its bound, as far as it has one; ``None`` when none fits."""
        names = list(self.scripts)
        if self.promise is None or len(names) == 1:
            return names[0], self._bound_ns(self.scripts[names[0]].bounds_ns, request.level)
        bounds_ns = {name: self._bound_ns(script.bounds_ns, request.level) for name, script in self.scripts.items()}
        known = [(name, bound_ns) for name, bound_ns in bounds_ns.items() if bound_ns is not None]
        for name, bound_ns in known:
            if bound_ns * (1.0 if name == known[-1][0] else request.margin) <= left_ns:
                return name, bound_ns
        return None

    def _bound_ns(self, bounds_ns: tuple[int, ...], level: ThermalLevel) -> int | None:
        if level < len(bounds_ns):
            return bounds_ns[level]
        return round(bounds_ns[-1] * self._factor) if bounds_ns and self._factor else None
