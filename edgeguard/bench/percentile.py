"""Percentiles of what was measured, as a value that was measured: the nearest rank, nothing in between."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """The least of ``values`` (at least one) that ``share`` of them, above 0 and at most 1, do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
