"""How much a calibration measures: two ways, and what each is good for. Nanoseconds; shares and factors are of 1."""

from __future__ import annotations

from dataclasses import dataclass

from edgeguard.clock import NS_PER_S

MINUTE_NS = 60 * NS_PER_S

QUICK_MARGIN = 1.1
"""What a quick calibration's bounds are stretched by in service: it has seen one process of the model, and no heat."""

SCENE = 20
"""So many observations in a row, at most, differ in one field only: enough that drafts are right sometimes."""

BUSY_LIMIT = 1.5
"""Half as much again as the kernel needs: a machine at rest stays below 1.1, one busy process a core makes 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """``percentile``: what is aimed at, unless the accepted miss rate asks for less. The requests at each level are
    shared among ``workers`` processes, and may take ``limit_ns``. ``soak_ns`` is the longest that the board is heated
    (0: not at all), in windows of ``soak_window_ns``. ``busy_limit`` is the fixed kernel's factor from which a block of
    requests is dropped."""

    kind: str
    percentile: float
    limit_ns: int
    workers: int
    soak_ns: int
    margin: float
    soak_window_ns: int = MINUTE_NS
    sweep_repeats: int = 9
    fit_requests: int = 40
    busy_limit: float = BUSY_LIMIT


QUICK = Effort(kind="quick", percentile=0.99, limit_ns=5 * MINUTE_NS, workers=1, soak_ns=0, margin=QUICK_MARGIN)
"""For first use: 299 independent requests at 95 % confidence, with a draft and without, two minutes at 5 Hz."""

FULL = Effort(kind="full", percentile=1.0, limit_ns=60 * MINUTE_NS, workers=3, soak_ns=30 * MINUTE_NS, margin=1.0)
"""What the guard should run on: as many requests as the accepted miss rate takes, cool and at the thermal limit."""
