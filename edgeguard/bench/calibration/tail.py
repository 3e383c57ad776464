"""How heavy the tail of a sample is: a warning beside a bound, never a reason to shrink one.

The excesses over the 90th percentile are taken as generalised Pareto; its shape is estimated by probability-weighted
moments (Hosking and Wallis, Technometrics 29, 1987). Below 0 the tail ends; at 0 it falls exponentially; above 0 it is
heavy, and the longest request is still to come.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LEAST_EXCESSES = 25
PERCENTILE = 90


def gpd_shape(samples: Sequence[float]) -> float | None:
    """The shape; ``None`` when there are too few excesses, or no tail at all."""
    values = np.asarray(samples, dtype=np.float64)
    if not len(values):
        return None
    limit = np.percentile(values, PERCENTILE)
    excesses = np.sort(values[values > limit] - limit)
    n = len(excesses)
    if n < LEAST_EXCESSES:
        return None
    mean = float(excesses.mean())
    weighted = float(np.mean((1 - (np.arange(1, n + 1) - 0.35) / n) * excesses))
    return 2 - mean / (mean - 2 * weighted) if mean > 2 * weighted else None
