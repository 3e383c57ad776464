"""Distribution-free statements about rare, slow requests: which percentile n samples support, and its bound.

Order statistics only; no shape is assumed and nothing is extrapolated beyond what was seen. If the true ``percentile``
is q, the number of independent samples above q is Bin(n, 1 - percentile). The r-th largest sample is therefore at least
q, unless fewer than r samples exceeded q. So the bound is the r-th largest sample, with r the greatest for which
``P(Bin(n, 1 - percentile) <= r - 1) <= 1 - confidence`` (Wilks 1941; Conover, Practical Nonparametric Statistics).

Samples that are not independent come with an ``inflation``, by which the variance of that number is greater
(``edgeguard.budget.effective`` measures it): the number is then taken as negative binomial with the same mean, which is
what a Poisson number of runs with a mean length of about the inflation gives. Percentiles, confidences and rates are
fractions of 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, islice

PERCENTILES = (0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999)
"""The percentiles that a profile may name: those that people quote. Below the first, nothing is worth promising."""

_BISECTIONS = 60  # halves [0, 1] to below the spacing of floats near 1e-3


def binomial_tail(x: int, n: int, rate: float) -> float:
    """``P(Bin(n, rate) <= x)``."""
    if x < 0:
        return 0.0
    if x >= n or rate <= 0:
        return 1.0
    if rate >= 1:
        return 0.0
    return min(1.0, math.fsum(islice(_binomial(n, rate), x + 1)))


def rank(n: int, *, percentile: float, confidence: float, inflation: float = 1.0) -> int:
    """Which largest of n samples bounds the percentile (1: the largest); 0 when n supports no bound at all."""
    rate = 1 - percentile
    if n == 0 or rate <= 0:
        return 0
    exceeding = _binomial(n, rate) if inflation <= 1 else _clustered(n, rate, inflation)
    tail = 0.0
    for r, probability in enumerate(exceeding):
        tail += probability
        if tail > 1 - confidence:
            return min(r, n)
    return n


def _binomial(n: int, rate: float) -> Iterator[float]:
    """``P(Bin(n, rate) = 0)``, ``= 1``, …, each in log space so that nothing underflows before it is added."""
    hit, miss = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(n + 1)
    for i in range(n + 1):
        yield math.exp(whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * hit + (n - i) * miss)


def _clustered(n: int, rate: float, inflation: float) -> Iterator[float]:
    """The same of the negative binomial number with the mean ``n * rate`` and ``inflation`` (above 1) times that as its
    variance, without end."""
    shape = n * rate / (inflation - 1)
    none = -shape * math.log(inflation)
    ratio = math.log1p(-1 / inflation)
    for i in count():
        yield math.exp(math.lgamma(shape + i) - math.lgamma(shape) - math.lgamma(i + 1) + i * ratio + none)


def floor_n(*, percentile: float, confidence: float) -> int:
    """The least n that supports the percentile: the largest of n samples exceeds it, 1 - percentile**n."""
    return math.ceil(math.log(1 - confidence) / math.log(percentile))


def percentiles_from(wanted: float) -> list[float]:
    """The percentiles that may be named when ``wanted`` is asked for, that one first, then the next lower ones."""
    return [wanted, *(one for one in reversed(PERCENTILES) if one < wanted)]


def miss_rate_bound(misses: int, n: int, *, confidence: float) -> float:
    """The highest rate at which so few misses of n still happen with probability 1 - confidence.

    Clopper-Pearson's upper limit, ``BetaInv(confidence; misses + 1, n - misses)``, by bisection on the exact tail.
    """
    if misses >= n:
        return 1.0
    low, high = misses / n, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if binomial_tail(misses, n, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high
