"""Whether a request may start, and whether it is worth going on: two questions of the worker, each within 20 µs.

A request *may start* when its bound fits: the price of its dearest path times the profile's score at the level that the
board is at now; there is none at a level that the profile never saw. It is *given up*
when a miss has become more likely than not: the median price of the cheapest path left exceeds the time left. Two
measures on purpose (design, "What keeps the guard from ever blocking"): giving up at the bound's small risk would throw
half of the good answers away, and a late answer is harmless, because the guard's timer covers it.

Nanoseconds. Time is handed in as what is left. The paths are the answer's (``edgeguard.answer.PathPrices``, priced with
this planner's ``cost.price_ns``): passes ``(k, p)`` and what they cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from edgeguard.budget.cost import PassCost
from edgeguard.types.board import ThermalLevel


class Path(Protocol):
    """The passes of one way to the end of the answer."""

    @property
    def price(self) -> float: ...


class Paths(Protocol):
    """The dearest and the cheapest rest of an answer from ``state``, with ``pending`` tokens to run before it."""

    def dearest(self, *, state: int, pending: int, cached: int) -> Path: ...

    def cheapest(self, *, state: int, pending: int, cached: int) -> Path: ...


class Planner:
    """Prices requests of one prompt and one answer schema. ``start`` is the state before the answer's first token;
    ``scores`` has one for every level that was measured."""

    def __init__(self, *, cost: PassCost, scores: Mapping[ThermalLevel, float], paths: Paths, start: int) -> None:
        self._cost = cost
        self._scores = dict(scores)
        self._paths = paths
        self._start = start
        self._dearest_ns: dict[tuple[int, int], float] = {}

    def prepare(self, *, request_tokens: range, cached: int) -> None:
        """Solve in advance what requests of these lengths ask, so that none pays for being the first of its length."""
        for tokens in request_tokens:
            self._price_ns(request_tokens=tokens, cached=cached)

    def bound_ns(self, *, request_tokens: int, cached: int, level: ThermalLevel = ThermalLevel.NOMINAL) -> int | None:
        """What a request takes at most, with the profile's confidence, from its release to its answer's arrival.

        ``cached`` tokens of its prompt need no pass; ``request_tokens`` (at least one) do. ``None``: never measured.
        """
        score = self._scores.get(level)
        return (
            None if score is None else math.ceil(score * self._price_ns(request_tokens=request_tokens, cached=cached))
        )

    def _price_ns(self, *, request_tokens: int, cached: int) -> float:
        key = (request_tokens, cached)
        if key not in self._dearest_ns:
            dearest = self._paths.dearest(state=self._start, pending=request_tokens, cached=cached)
            self._dearest_ns[key] = self._cost.constant_ns + dearest.price
        return self._dearest_ns[key]

    def more_likely_late(self, *, state: int, pending: int, cached: int, left_ns: int) -> bool:
        """Before a pass: whether even the cheapest way to the end takes, at the median, more than is left."""
        return self._paths.cheapest(state=state, pending=pending, cached=cached).price > left_ns
