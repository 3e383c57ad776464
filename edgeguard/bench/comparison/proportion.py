"""Shares of right answers, and whether two of them differ: intervals and exact tests for counts. Fractions of 1.

- A share's interval is Wilson's (1927), which stays inside 0 to 1 and is honest for few cases and for shares near 1.
- Two models that answered the same cases are compared by the cases on which they differ: McNemar's exact test (1947),
  and for the size of the difference Agresti and Min's interval (2005): half a case is added to each kind of pair, so
  that no difference in few cases does not look like certainty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

from edgeguard.budget.bound import binomial_tail

CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """``hits`` of ``n``."""

    hits: int
    n: int

    @classmethod
    def of(cls, verdicts: Iterable[bool]) -> Share:
        listed = list(verdicts)
        return cls(hits=sum(listed), n=len(listed))

    @property
    def value(self) -> float:
        return self.hits / self.n if self.n else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share is, with 95 % confidence."""
        if not self.n:
            return 0.0, 1.0
        centre = self.value + _Z**2 / (2 * self.n)
        half = _Z * math.sqrt(self.value * (1 - self.value) / self.n + _Z**2 / (4 * self.n**2))
        whole = 1 + _Z**2 / self.n
        return max(0.0, (centre - half) / whole), min(1.0, (centre + half) / whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Of ``n`` cases, ``gained`` only the model answered right, and ``lost`` only the reference."""

    gained: int
    lost: int
    n: int

    @classmethod
    def of(cls, model: Iterable[bool], reference: Iterable[bool]) -> Paired:
        pairs = list(zip(model, reference, strict=True))
        return cls(gained=pairs.count((True, False)), lost=pairs.count((False, True)), n=len(pairs))

    @property
    def difference(self) -> float:
        """How much greater the model's share is; below zero it is worse."""
        return (self.gained - self.lost) / self.n

    @property
    def half_width(self) -> float:
        """Of the 95 % interval of the difference."""
        gained, lost, n = self.gained + 0.5, self.lost + 0.5, self.n + 2
        return _Z * math.sqrt(gained + lost - (gained - lost) ** 2 / n) / n

    @property
    def p_value(self) -> float:
        """How likely a split at least so uneven is if neither is better."""
        return min(1.0, 2 * binomial_tail(min(self.gained, self.lost), self.gained + self.lost, 0.5))
