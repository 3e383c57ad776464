"""How far a figure would stray if it were measured again: it is computed of resamplings of what was measured.

Things that were measured together (one question in two ways, a turn of requests) have one number, so that what they
share stays shared (Efron 1979; of turns: Künsch 1989). The caller's generator makes it the same every time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from edgeguard.budget.cost import median

RESAMPLINGS = 4_000


def resampled(count: int, figure: Callable[[Sequence[int]], float], *, draw: random.Random) -> list[float]:
    """``figure`` of so many of the first ``count`` numbers, drawn with replacement: ``RESAMPLINGS`` times, in order."""
    return sorted(figure(draw.choices(range(count), k=count)) for _ in range(RESAMPLINGS))


def interval(count: int, figure: Callable[[Sequence[int]], float], *, draw: random.Random) -> tuple[float, float]:
    """The central 95 % of them."""
    found = resampled(count, figure, draw=draw)
    return found[round(0.025 * RESAMPLINGS)], found[round(0.975 * RESAMPLINGS) - 1]


def ratio_interval(ours: Sequence[float], theirs: Sequence[float], *, draw: random.Random) -> tuple[float, float]:
    """Of our median over theirs, of the same questions in the same order."""
    return interval(
        len(ours), lambda at: median([ours[one] for one in at]) / median([theirs[one] for one in at]), draw=draw
    )
