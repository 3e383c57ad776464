"""Distribution-free statements about rare, slow requests: which percentile n samples support, and its bound.

Order statistics only; no shape is assumed and nothing is extrapolated beyond what was seen. If the true ``percentile``
is q, the number of independent samples above q is Bin(n, 1 - percentile). The r-th largest sample is therefore at least
q, unless fewer than r samples exceeded q. So the bound is the r-th largest sample, with r the greatest for which
``P(Bin(n, 1 - percentile) <= r - 1) <= 1 - confidence`` (Wilks 1941; Conover, Practical Nonparametric Statistics).

Samples must be independent; ``edgeguard.budget.effective`` thins those that are not. Percentiles, confidences and rates
are fractions of 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

PERCENTILES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999)
"""The percentiles that a profile may name: those that people quote."""

_BISECTIONS = 60  # halves [0, 1] to below the spacing of floats near 1e-3


def binomial_tail(x: int, n: int, rate: float) -> float:
    """``P(Bin(n, rate) <= x)``, each term in log space so that nothing underflows before it is added."""
    if x < 0:
        return 0.0
    if x >= n or rate <= 0:
        return 1.0
    if rate >= 1:
        return 0.0
    hit, miss = math.log(rate), math.log1p(-rate)
    whole = math.lgamma(n + 1)
    terms = (whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * hit + (n - i) * miss for i in range(x + 1))
    return min(1.0, math.fsum(map(math.exp, terms)))


def rank(n: int, *, percentile: float, confidence: float) -> int:
    """Which largest of n samples bounds the percentile (1: the largest); 0 when n supports no bound at all."""
    r = 0
    while r < n and binomial_tail(r, n, 1 - percentile) <= 1 - confidence:
        r += 1
    return r


def floor_n(*, percentile: float, confidence: float) -> int:
    """The least n that supports the percentile: the largest of n samples exceeds it, 1 - percentile**n."""
    return math.ceil(math.log(1 - confidence) / math.log(percentile))


def highest_percentile(n: int, *, confidence: float, wanted: float = 1.0) -> float | None:
    """The highest of ``PERCENTILES`` (and ``wanted``, above which none is needed) that n samples support."""
    candidates = sorted({*(one for one in PERCENTILES if one < wanted), *((wanted,) if wanted < 1 else ())})
    supported = [one for one in candidates if floor_n(percentile=one, confidence=confidence) <= n]
    return supported[-1] if supported else None


def order_bound(samples: Sequence[float], *, percentile: float, confidence: float) -> float | None:
    """The r-th largest sample; ``None`` when there are too few samples for any bound."""
    r = rank(len(samples), percentile=percentile, confidence=confidence)
    return sorted(samples, reverse=True)[r - 1] if r else None


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
