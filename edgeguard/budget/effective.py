"""How many of n samples in a row count as independent, for a statement about one percentile.

Requests that follow one another share the machine's state: slow ones come in runs, and order statistics of dependent
samples promise too much. What a bound on a percentile rests on is how many samples lie beyond it, so it is the variance
of *that count* which is measured: over the variance that independent samples would have it is the inflation
``1 + 2 * (sum of the autocorrelations of "beyond the percentile")``, and n samples are worth ``n / inflation``
(Bayley and Hammersley 1946; for extremes: Leadbetter 1983). ``edgeguard.budget.bound.rank`` takes it from there.

- The percentile is the one that is to be bounded, or the highest that has ``LEAST_BEYOND`` samples beyond it.
- The sum goes to that one of the lags 1, 2, 4, … n/10 at which it is greatest, of those where it stands out of the
  noise (``NOISE`` standard deviations of white noise, which are ``sqrt(lag / n)``): correlations too small to be seen
  one by one, over many lags, are what hides a slow regime.
- As the samples beyond come in about ``beyond / inflation`` runs, one standard error, ``sqrt(2 * inflation / beyond)``
  of it, is added: few runs say little about how long runs are.

Why not thin to the lag at which the autocorrelation has sunk below 0.1? In a simulation of 500 calibrations each, that
lag named a p99 for 18 % of those with two regimes, slow (mean dwell 20) for a tenth of the time, n = 9,000, where this
names it for all; its bounds on AR(1) noise lay 25 % above the percentile (in standard deviations of the noise) where
these lie 10 % above; and it was wrong in 23 % of those with a weak slow regime (mean dwell 50) where this is in 9 %.
What both keep to is the stated confidence on AR(1) noise and on two regimes: ``tests/test_budget_coverage.py``.

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

LEAST_BEYOND = 30
"""So many samples beyond a level say something about whether they come in runs."""

NOISE = 2.6
"""Half a percent of white noise at one lag; with all lags that are tried, 2 % of independent calibrations are taken for
dependent."""

LJUNG_BOX_LAGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependence:
    """``inflation`` (at least 1) of the variance; so many samples count as one. Of n, ``effective_n`` are left."""

    inflation: float
    effective_n: int

    @property
    def lag(self) -> int:
        """Whole samples that count as one."""
        return math.ceil(self.inflation)


def dependence(samples: Sequence[float], *, percentile: float) -> Dependence:
    """Of samples in the order in which they were taken, for a bound on ``percentile`` (a fraction of 1)."""
    values = np.asarray(samples, dtype=np.float64)
    n = len(values)
    return _of(values, min(percentile, max(0.5, 1 - LEAST_BEYOND / n))) if n > 1 else _whole(n)


def ljung_box_p(samples: Sequence[float]) -> float:
    """The p-value of "these samples are independent" by the first autocorrelations (Ljung and Box 1978)."""
    values = np.asarray(samples, dtype=np.float64)
    n, lags = len(values), min(LJUNG_BOX_LAGS, len(values) // 5)
    if lags < 1:
        return 1.0
    correlation = _autocorrelation(values)[1 : lags + 1]
    statistic = n * (n + 2) * float(np.sum(correlation**2 / (n - np.arange(1, lags + 1))))
    return _chi_square_tail(statistic, lags)


def _of(values: Floats, percentile: float) -> Dependence:
    n = len(values)
    place = math.ceil(n * percentile) - 1
    beyond = values > np.partition(values, place)[place]
    count = int(beyond.sum())
    if not 0 < count < n:
        return _whole(n)
    sums = np.cumsum(_autocorrelation(beyond.astype(np.float64))[1:])
    lags = [2**power for power in range(max(1, n // 10).bit_length())]
    seen = [1 + 2 * float(sums[lag - 1]) for lag in lags if sums[lag - 1] > NOISE * math.sqrt(lag / n)]
    if not seen:
        return _whole(n)
    inflation = max(seen) * (1 + math.sqrt(2 * max(seen) / count))
    return Dependence(inflation=min(inflation, float(n)), effective_n=max(1, math.floor(n / inflation)))


def _whole(n: int) -> Dependence:
    return Dependence(inflation=1.0, effective_n=n)


def _autocorrelation(values: Floats) -> Floats:
    """At every lag (0 = 1), the biased estimate, by Fourier transform; constant samples have none."""
    centred = values - values.mean()
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, n=size)) ** 2
    covariance = np.fft.irfft(power, n=size)[: len(values)]
    if covariance[0] <= 1e-12 * max(1.0, float(np.max(np.abs(values))) ** 2):
        return np.concatenate(([1.0], np.zeros(len(values) - 1)))
    return np.asarray(covariance / covariance[0], dtype=np.float64)


def _chi_square_tail(statistic: float, degrees: int) -> float:
    """``P(chi-square > statistic)``: the upper incomplete gamma function by its recursion in steps of two degrees."""
    half = statistic / 2
    if half <= 0:
        return 1.0
    tail = math.erfc(math.sqrt(half)) if degrees % 2 else 0.0
    shape = 0.5 if degrees % 2 else 0.0
    while shape < degrees / 2:
        tail += math.exp(shape * math.log(half) - half - math.lgamma(shape + 1))
        shape += 1
    return min(1.0, tail)
