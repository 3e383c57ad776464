"""What a draft costs: at worst, wherever it turns out wrong, and on average, from how often it has been right.

A draft's pass that reaches choice n runs the tokens up to there. It ends at the first choice at which the model wants
another token than the draft's; from there the answer goes on, and what was run behind that choice was for nothing.

- *At worst*: that pass, and the dearest rest over every choice at which it can end.
- *On average*: that pass, and behind the choice at which it ends the rest of the draft, a pass per choice. What comes
  behind the draft is left out: it is the same however far the draft is run.

Prices are in the unit that ``price`` returns. Pure; a draft is the answer's (``edgeguard.answer.Draft``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class Reach(Protocol):
    """A choice that a pass can decide: ``at`` so many tokens of the draft; see ``edgeguard.answer.Reach``."""

    @property
    def at(self) -> int: ...

    @property
    def state(self) -> int: ...

    @property
    def token(self) -> int | None: ...

    @property
    def again(self) -> float: ...


class Rests(Protocol):
    """The dearest rest of an answer behind a choice, and behind another token than ``but``."""

    def dearest_behind(self, *, choice: int, but: int | None = None, cached: int) -> float: ...


class DraftPrices:
    """Prices a pass that runs ``pending`` tokens and a draft behind them, with ``cached`` tokens cached."""

    def __init__(self, *, price: Callable[[int, int], float], rests: Rests) -> None:
        self._price = price
        self._rests = rests

    def worst(self, reaches: Sequence[Reach], *, pending: int, cached: int) -> list[float]:
        """For each choice that the pass may reach, the price to the end of the answer at worst."""
        before, prices, wrong = pending + cached, [], 0.0
        for one in reaches:
            rest = self._rests.dearest_behind(choice=one.state, cached=before + one.at)
            prices.append(self._price(pending + one.at, cached) + max(wrong, rest))
            if one.token is not None:
                behind = self._rests.dearest_behind(choice=one.state, but=one.token, cached=before + one.at)
                wrong = max(wrong, behind)
        return prices

    def expected(self, reaches: Sequence[Reach], *, pending: int, cached: int) -> list[float]:
        """For each choice that the pass may reach, the price to the end of the draft on average."""
        before, rests = pending + cached, [0.0]
        for one, after in zip(reversed(reaches[:-1]), reversed(reaches[1:]), strict=True):
            rests.insert(0, self._price(after.at - one.at, before + one.at) + rests[0])
        prices, ended, right = [], 0.0, 1.0
        for one, rest in zip(reaches, rests, strict=True):
            prices.append(self._price(pending + one.at, cached) + ended + right * rest)
            ended += right * (1 - one.again) * rest
            right *= one.again
        return prices
