"""What a pass costs: one function of the new tokens k and the cached tokens p, fitted to measured medians.

Nanoseconds. In k: isotonic (a longer pass is never cheaper) and linear between the measured sizes; below the smallest
it is the smallest's price, above the largest it goes on with the steepest of the last slopes. In p: linear. It is a
median on purpose: the price says what is typical, and the score of whole requests (``edgeguard.budget.bound``) says how
far beyond the typical the rare ones lie. A request costs its passes plus ``constant_ns`` for tokenising, hand-over and
parsing.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

OBSERVED_LEAST = 5
"""A size that the sweep left out becomes a point of the curve when so many passes of it were seen: one is no median."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTimes:
    """Measured passes of one shape: ``k`` new tokens, ``p`` cached."""

    k: int
    p: int
    elapsed_ns: tuple[int, ...]

    @property
    def median_ns(self) -> float:
        return median(self.elapsed_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCost:
    """The price of a pass. ``sizes`` rise, ``prices_ns`` (at ``p_reference`` cached tokens) never fall."""

    sizes: tuple[int, ...]
    prices_ns: tuple[float, ...]
    p_reference: int
    per_cached_ns: float
    constant_ns: int = 0

    @classmethod
    def fit(cls, sweep: Sequence[PassTimes], *, observed: Sequence[PassTimes] = ()) -> PassCost:
        """Fit to a sweep, and to passes ``observed`` in requests; the slope in p comes from the sweep alone.

        (Requests rest between passes and a sweep does not: their difference must not pass for a slope.)
        """
        if not any(times.elapsed_ns for times in sweep):
            raise ValueError("a pass cost needs at least one measured pass")
        p_reference = max(times.p for times in sweep)
        per_cached_ns = max(0.0, _slope_in_p(sweep))
        at_reference: dict[int, list[float]] = {}
        for times in (*sweep, *observed):
            shift_ns = per_cached_ns * (p_reference - times.p)
            at_reference.setdefault(times.k, []).extend(elapsed_ns + shift_ns for elapsed_ns in times.elapsed_ns)
        swept = {times.k for times in sweep if times.elapsed_ns}
        sizes = tuple(sorted(k for k, samples in at_reference.items() if k in swept or len(samples) >= OBSERVED_LEAST))
        medians = [median(at_reference[k]) for k in sizes]
        weights = [len(at_reference[k]) for k in sizes]
        return cls(
            sizes=sizes,
            prices_ns=tuple(_isotonic(medians, weights)),
            p_reference=p_reference,
            per_cached_ns=per_cached_ns,
        )

    def with_constant(self, constant_ns: int) -> PassCost:
        """The same passes, and what a request costs beside them."""
        return replace(self, constant_ns=constant_ns)

    def price_ns(self, k: int, p: int) -> int:
        """The median price of one pass of ``k`` new tokens with ``p`` cached; monotone in both, at least 1 ns."""
        return max(1, round(self._at_reference_ns(k) + self.per_cached_ns * (p - self.p_reference)))

    def passes_ns(self, passes: Iterable[tuple[int, int]]) -> int:
        """The price of a whole request that makes these ``(k, p)`` passes."""
        return self.constant_ns + sum(self.price_ns(k, p) for k, p in passes)

    def _at_reference_ns(self, k: int) -> float:
        sizes, prices = self.sizes, self.prices_ns
        if k <= sizes[0]:
            return prices[0]
        if k > sizes[-1]:
            return prices[-1] + (k - sizes[-1]) * self._slope_above_ns()
        right = bisect.bisect_left(sizes, k)
        left = right - 1
        share = (k - sizes[left]) / (sizes[right] - sizes[left])
        return prices[left] + share * (prices[right] - prices[left])

    def _slope_above_ns(self) -> float:
        """Per token above the largest size; the mean cost of a token when there is but one size."""
        sizes, prices = self.sizes, self.prices_ns
        last = slice(-3, None)
        points = list(zip(sizes[last], prices[last], strict=True))
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(points)]
        return max(slopes, default=prices[0] / sizes[0])


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the middle two. (Importing ``statistics`` would cost the guard 10 ms.)"""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _slope_in_p(rows: Sequence[PassTimes]) -> float:
    """Theil-Sen: the median slope over pairs of equal k and different p; 0 when there are none."""
    measured = [times for times in rows if times.elapsed_ns]
    slopes = [
        (b.median_ns - a.median_ns) / (b.p - a.p) for a, b in combinations(measured, 2) if a.k == b.k and a.p != b.p
    ]
    return median(slopes) if slopes else 0.0


def _isotonic(values: Sequence[float], weights: Sequence[int]) -> list[float]:
    """The nearest sequence that never falls (pool adjacent violators, Ayer et al. 1955)."""
    pools: list[tuple[float, int, int]] = []  # mean, weight, length
    for value, weight in zip(values, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, mass, length = pools.pop()
            total = mass + pool[1]
            pool = ((mean * mass + pool[0] * pool[1]) / total, total, length + pool[2])
        pools.append(pool)
    return [mean for mean, _, length in pools for _ in range(length)]
