"""What the passes still to come can cost: the dearest and the cheapest path to the end of the answer.

A pass has ``k`` new tokens with ``p`` tokens cached. The first carries what is pending (the observation's tokens, or
the token just chosen) and the forced run behind it; each later one a chosen token and the forced run behind that. So
one pass is run per choice, and nothing behind the last.

Dynamic programming over pairs (shape, tokens cached), exact for every price function: ``p`` differs between paths of
different lengths, so the pair, not the shape alone, decides what follows. There are few pairs, for shapes are few and
an answer is short; what was solved is kept, so asking again on the way costs a look-up. Prices are in the unit that
``price`` returns; whether a pass of one token is padded to two is for ``price`` to know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from edgeguard.answer.automaton import NO_CHOICE, Automaton, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class PassPath:
    """The passes of one path, each ``(k, p)``, and what they cost together."""

    passes: tuple[tuple[int, int], ...]
    price: float


class PathPrices:
    """Prices the rest of an answer with ``price(k, p)``."""

    def __init__(self, *, automaton: Automaton, price: Callable[[int, int], float]) -> None:
        self._dearest = _Extreme(automaton=automaton, price=price, choose=max)
        self._cheapest = _Extreme(automaton=automaton, price=price, choose=min)

    def dearest(self, *, state: int, pending: int, cached: int) -> PassPath:
        """The rest that costs most, from ``state`` with ``pending`` tokens (at least one) to run before it."""
        return self._dearest.path(state, pending, cached)

    def cheapest(self, *, state: int, pending: int, cached: int) -> PassPath:
        """The rest that costs least: below its price no answer can be complete."""
        return self._cheapest.path(state, pending, cached)

    def dearest_behind(self, *, choice: int, but: int | None = None, cached: int) -> float:
        """What the dearest rest behind a choice costs, ``cached`` tokens being before it; behind the token ``but``,
        whatever it costs, it is not.
        """
        return self._dearest.behind(choice, but, cached)

    def cheapest_behind(self, *, choice: int, cached: int) -> float:
        """What the cheapest rest behind a choice costs."""
        return self._cheapest.behind(choice, None, cached)


# From a choice on: the price to the end, the size of the next pass and the shape behind it (0, 0 when none is needed).
_Step = tuple[float, int, int]


class _Extreme:
    """The dynamic programme, for one direction of ``choose`` (``max`` or ``min``)."""

    def __init__(
        self,
        *,
        automaton: Automaton,
        price: Callable[[int, int], float],
        choose: Callable[[Iterable[_Step]], _Step],
    ) -> None:
        self._automaton = automaton
        self._price = price
        self._choose = choose
        self._steps: dict[tuple[int, int], _Step] = {}  # by shape of the choice and tokens cached
        self._behind: dict[tuple[int, int | None, int], float] = {}  # by state, the token left out and tokens cached

    def path(self, state: int, pending: int, cached: int) -> PassPath:
        size, shape = pending + self._automaton.forced_length(state), self._automaton.shape(state)
        self._solve(shape, cached + size)
        passes = []
        while shape != NO_CHOICE:
            passes.append((size, cached))
            cached += size
            _, size, shape = self._steps[shape, cached]
        return PassPath(passes=tuple(passes), price=sum(self._price(k, p) for k, p in passes))

    def behind(self, choice: int, but: int | None, cached: int) -> float:
        price = self._behind.get((choice, but, cached))
        if price is None:
            ways = self._automaton.ways(choice, but=but)
            for size, after in ways:
                self._solve(after, cached + size)
            price = self._behind[choice, but, cached] = self._best(ways, cached)[0]
        return price

    def _solve(self, shape: int, cached: int) -> None:
        """Fill ``_steps`` for every pair that can follow: collected from the front, priced from the back."""
        reached: dict[int, set[int]] = {shape: {cached}}
        for one in range(shape, NO_CHOICE, -1):
            for position in reached.get(one, ()):
                if (one, position) not in self._steps:
                    for size, after in self._automaton.shapes[one]:
                        reached.setdefault(after, set()).add(position + size)
        for one in sorted(reached):
            for position in reached[one]:
                if (one, position) not in self._steps:
                    self._steps[one, position] = self._step(one, position)

    def _step(self, shape: int, cached: int) -> _Step:
        return self._best(self._automaton.shapes[shape], cached) if shape else (0.0, 0, NO_CHOICE)

    def _best(self, ways: Shape, cached: int) -> _Step:
        return self._choose(
            (self._price(size, cached) + self._steps[after, cached + size][0] if after else 0.0, size, after)
            for size, after in ways
        )
