"""Whether a request may start, how much of a draft it runs, and whether it is worth going on: the worker's questions.

A request *may start* when its bound fits: the price of its dearest path times the profile's score at the level that the
board is at now; there is none at a level that the profile never saw. It is *given up* when a miss has become more
likely than not: the median price of the cheapest path left exceeds the time left. Two measures on purpose (design,
"What keeps the guard from ever blocking"): giving up at the bound's small risk would throw half of the good answers
away, and a late answer is harmless, because the guard's timer covers it.

A *draft* is run as far as it pays on average, where its worst case fits too. The first pass decides what is promised:
the price of its draft's worst case. A later pass may draft again as long as that stays true, wherever it turns out
wrong; so no draft can make a request dearer than its bound has said.

Nanoseconds. Time is handed in as what is left. The paths are the answer's (``edgeguard.answer.PathPrices``, priced with
this planner's ``cost.price_ns``). Each question takes some tens of microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgeguard.budget.cost import PassCost
from edgeguard.budget.draft_prices import DraftPrices, Reach, Rests
from edgeguard.types.board import ThermalLevel


class Path(Protocol):
    """The passes of one way to the end of the answer."""

    @property
    def price(self) -> float: ...


class Paths(Rests, Protocol):
    """The dearest and the cheapest rest of an answer from ``state``, with ``pending`` tokens to run before it."""

    def dearest(self, *, state: int, pending: int, cached: int) -> Path: ...

    def cheapest(self, *, state: int, pending: int, cached: int) -> Path: ...

    def cheapest_behind(self, *, choice: int, cached: int) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a request is run: its first pass goes to choice ``reach`` of the draft (0: no guess in it), and its passes
    cost ``promised_ns`` at worst. ``bound_ns`` is ``None`` at a level that was never measured.
    """

    reach: int
    promised_ns: float
    bound_ns: int | None

    def fits(self, left_ns: int) -> bool:
        return self.bound_ns is not None and self.bound_ns <= left_ns


class Planner:
    """Prices requests of one prompt and one answer schema.

    ``scores`` has two for each level that was measured, without and with a draft.
    """

    def __init__(self, *, cost: PassCost, scores: Mapping[tuple[ThermalLevel, bool], float], paths: Paths) -> None:
        self._cost = cost
        self._scores = dict(scores)
        self._paths = paths
        self._prices = DraftPrices(price=cost.price_ns, rests=paths)

    def prepare(self, *, state: int, request_tokens: range, cached: int) -> None:
        """Solve in advance what requests of these lengths ask, so that none pays for being the first of its length."""
        for tokens in request_tokens:
            self._paths.dearest(state=state, pending=tokens, cached=cached)
            self._paths.cheapest(state=state, pending=tokens, cached=cached)

    def knows(self, level: ThermalLevel) -> bool:
        """Whether there is any bound at this level."""
        return (level, False) in self._scores

    def plan(self, reaches: Sequence[Reach], *, pending: int, cached: int, left_ns: int, level: ThermalLevel) -> Plan:
        """For a request whose draft has these reaches: the plan that costs least on average among those that fit the
        time left; the one without a draft when none does. ``pending`` tokens of its prompt (at least one) are not
        cached. The bound is from its release to its answer's arrival, with the profile's confidence.
        """
        worst_ns = self._prices.worst(reaches, pending=pending, cached=cached) or [0.0]  # no choice, no pass
        plans = [
            Plan(reach=reach, promised_ns=price_ns, bound_ns=self._bound_ns(price_ns, level=level, drafted=reach > 0))
            for reach, price_ns in enumerate(worst_ns)
        ]
        return plans[self._best([plan.fits(left_ns) for plan in plans], reaches, pending=pending, cached=cached)]

    def reach(self, reaches: Sequence[Reach], *, pending: int, cached: int, left_of_promise_ns: float) -> int:
        """How far a later pass goes: as far as it pays on average without breaking what was promised."""
        worst_ns = self._prices.worst(reaches, pending=pending, cached=cached)
        fits = [price_ns <= left_of_promise_ns for price_ns in worst_ns]
        return self._best(fits, reaches, pending=pending, cached=cached)

    def spent_ns(self, passes: Sequence[tuple[int, int]]) -> int:
        """The price of the passes ``(k, p)`` that a request has made, which counts against its promise."""
        return sum(self._cost.price_ns(k, p) for k, p in passes)

    def more_likely_late(
        self, reaches: Sequence[Reach], reach: int, *, state: int, pending: int, cached: int, left_ns: int
    ) -> bool:
        """Before a pass that goes to ``reach``: whether the best that can come of it takes, at the median, more than
        is left.
        """
        cheapest_ns = self._paths.cheapest(state=state, pending=pending, cached=cached).price
        if cheapest_ns <= left_ns or reach == 0:
            return cheapest_ns > left_ns
        end = reaches[reach]
        rest_ns = self._paths.cheapest_behind(choice=end.state, cached=cached + pending + end.at)
        return self._cost.price_ns(pending + end.at, cached) + rest_ns > left_ns

    def _best(self, fits: Sequence[bool], reaches: Sequence[Reach], *, pending: int, cached: int) -> int:
        """The cheapest on average of those that fit, of equals the one that goes farthest; 0 when none does."""
        if not any(fits[1:]):
            return 0
        expected_ns = self._prices.expected(reaches, pending=pending, cached=cached)
        fitting = [reach for reach, one in enumerate(fits) if one]
        return min(fitting, key=lambda reach: (expected_ns[reach], -reach))

    def _bound_ns(self, price_ns: float, *, level: ThermalLevel, drafted: bool) -> int | None:
        score = self._scores.get((level, drafted))
        return None if score is None else math.ceil(score * (self._cost.constant_ns + price_ns))
