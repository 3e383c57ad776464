"""How many of n samples in a row count as independent.

Requests that follow one another share the machine's state: one slow request is followed by another. Order statistics of
dependent samples promise too much. So the samples are thinned to the lag at which the autocorrelation is gone, of the
samples themselves *and* of the indicator "above the 90th percentile" (the body may be independent while the tail
clusters). Gone is: below ``max(0.1, 1.96 / sqrt(n))``, the second being the 95 % band of white noise. Only positive
correlation counts: a negative one makes the extremes less clustered, not more.

Bench only: this is the one file of the package that needs numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

THRESHOLD_LEAST = 0.1
TAIL_PERCENTILE = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """``lag``: every lag-th sample is taken as independent; ``effective_n``: so many are left."""

    lag: int
    effective_n: int


def dependence(samples: Sequence[float]) -> Dependence:
    """The lag and the effective number of samples given in the order in which they were taken."""
    values = np.asarray(samples, dtype=np.float64)
    if len(values) < 2:
        return Dependence(lag=1, effective_n=len(values))
    tail = (values > np.percentile(values, TAIL_PERCENTILE)).astype(np.float64)
    lag = max(_lag_of(values), _lag_of(tail))
    return Dependence(lag=lag, effective_n=len(thin(samples, lag=lag)))


def thin(samples: Sequence[float], *, lag: int) -> Sequence[float]:
    """Every lag-th sample, the last one included."""
    return samples[(len(samples) - 1) % lag :: lag]


def _lag_of(values: Floats) -> int:
    """The first lag at which the autocorrelation is gone; all of n when it never is."""
    threshold = max(THRESHOLD_LEAST, 1.96 / math.sqrt(len(values)))
    correlation = _autocorrelation(values)
    gone = np.flatnonzero(correlation[1:] < threshold)
    return int(gone[0]) + 1 if len(gone) else len(values)


def _autocorrelation(values: Floats) -> Floats:
    """At every lag (0 = 1), the biased estimate, by Fourier transform; constant samples have none."""
    centred = values - values.mean()
    power = np.abs(np.fft.rfft(centred, n=2 * len(values))) ** 2
    covariance = np.fft.irfft(power)[: len(values)]
    if covariance[0] <= 1e-12 * max(1.0, float(np.max(np.abs(values))) ** 2):
        return np.concatenate(([1.0], np.zeros(len(values) - 1)))
    return np.asarray(covariance / covariance[0], dtype=np.float64)
