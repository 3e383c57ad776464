"""What a pass costs: one function of the new tokens k and the cached tokens p, fitted to measured medians.

Nanoseconds. In k: isotonic (a longer pass is never cheaper) and linear between the measured sizes; below the smallest
it is the smallest's price. Where passes have only the measured sizes (``stepped``), it is the next larger one's. More
tokens than the largest size are run in several passes, and cost what those do. In p: linear. A sweep gives the shape;
passes seen in real requests, which come after a rest, give the level. It is a median on purpose: the price says what is
typical, and the score of whole requests (``edgeguard.budget.bound``) says how far beyond the typical the rare ones lie.
A request costs its passes plus ``constant_ns`` for tokenising, hand-over and parsing.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

NEAREST = 20
"""So many passes of real requests, those nearest in size, set the level at a swept size: enough for a median, few
enough that the first pass after a rest, always a large one, does not price the small ones that follow it."""


MOST_OF_CACHE = 0.9
"""Of the least pass, reading what is cached costs so much at most: a sweep on a busy machine can be steeper than what
requests take, and then a pass behind nothing would be free."""


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
    """The price of a pass. ``sizes`` rise, ``prices_ns`` (at ``p_reference`` cached tokens) never fall; with
    ``stepped`` a pass of fewer tokens is one of the next size."""

    sizes: tuple[int, ...]
    prices_ns: tuple[float, ...]
    p_reference: int
    per_cached_ns: float
    constant_ns: int = 0
    stepped: bool = False

    @classmethod
    def fit(cls, sweep: Sequence[PassTimes], *, observed: Sequence[PassTimes] = (), stepped: bool = False) -> PassCost:
        """Fit to a sweep, and to the passes ``observed`` in requests; ``ValueError`` without a single measured pass."""
        p_reference = max((times.p for times in sweep), default=0)
        per_cached_ns = max(0.0, _slope_in_p(sweep))
        swept: dict[int, list[float]] = {}
        for times in sweep:
            shift_ns = per_cached_ns * (p_reference - times.p)
            swept.setdefault(times.k, []).extend(elapsed_ns + shift_ns for elapsed_ns in times.elapsed_ns)
        sizes = tuple(sorted(k for k, samples in swept.items() if samples))
        if not sizes:
            raise ValueError("a pass cost needs at least one measured pass")
        shape = cls(
            sizes=sizes,
            prices_ns=tuple(_isotonic([median(swept[k]) for k in sizes])),
            p_reference=p_reference,
            per_cached_ns=per_cached_ns,
            stepped=stepped,
        )
        levels = [
            (times.k, elapsed_ns / shape.price_ns(times.k, times.p))
            for times in observed
            for elapsed_ns in times.elapsed_ns
        ]
        prices_ns = _isotonic([one * _level(k, levels) for k, one in zip(sizes, shape.prices_ns, strict=True)])
        steepest_ns = MOST_OF_CACHE * prices_ns[0] / max(1, p_reference)
        return replace(shape, prices_ns=tuple(prices_ns), per_cached_ns=min(per_cached_ns, steepest_ns))

    def with_constant(self, constant_ns: int) -> PassCost:
        """The same passes, and what a request costs beside them."""
        return replace(self, constant_ns=constant_ns)

    def price_ns(self, k: int, p: int) -> int:
        """The median price of a pass of ``k`` new tokens with ``p`` cached, or of the passes that these are run in.

        Monotone in both, at least 1 ns.
        """
        largest, whole_ns = self.sizes[-1], 0
        while k > largest:
            whole_ns += self._single_ns(largest, p)
            k, p = k - largest, p + largest
        return whole_ns + self._single_ns(k, p)

    def passes_ns(self, passes: Iterable[tuple[int, int]]) -> int:
        """The price of a whole request that makes these ``(k, p)`` passes."""
        return self.constant_ns + sum(self.price_ns(k, p) for k, p in passes)

    def _single_ns(self, k: int, p: int) -> int:
        return max(1, round(self._at_reference_ns(k) + self.per_cached_ns * (p - self.p_reference)))

    def _at_reference_ns(self, k: int) -> float:
        sizes, prices = self.sizes, self.prices_ns
        right = bisect.bisect_left(sizes, k)
        if self.stepped or right == 0:
            return prices[right]
        left = right - 1
        share = (k - sizes[left]) / (sizes[right] - sizes[left])
        return prices[left] + share * (prices[right] - prices[left])


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherModel:
    """What the passes of a further model cost, where the ``rungs`` of a ladder ask it instead of the first."""

    rungs: tuple[str, ...]
    cost: PassCost
    sweep: tuple[PassTimes, ...]


def cost_of(rung: str, *, first: PassCost, others: Iterable[OtherModel]) -> PassCost:
    """That of the model which this rung asks."""
    return next((one.cost for one in others if rung in one.rungs), first)


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


def _level(k: int, levels: Sequence[tuple[int, float]]) -> float:
    """What passes of about this size took in requests, over what they took in the sweep."""
    nearest = sorted(levels, key=lambda level: abs(level[0] - k))[:NEAREST]
    return median([ratio for _, ratio in nearest]) if nearest else 1.0


def _isotonic(values: Sequence[float]) -> list[float]:
    """The nearest sequence that never falls (pool adjacent violators, Ayer et al. 1955)."""
    pools: list[tuple[float, int]] = []  # mean, length
    for value in values:
        mean, length = value, 1
        while pools and pools[-1][0] > mean:
            before, count = pools.pop()
            mean, length = (before * count + mean * length) / (count + length), count + length
        pools.append((mean, length))
    return [mean for mean, length in pools for _ in range(length)]
