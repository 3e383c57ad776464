"""A calibration profile: what was measured, on what, and the bound that follows. Data only.

Durations are nanoseconds, percentiles and confidences fractions of 1. A profile belongs to one fingerprint:
``differences`` says in words what is not the same. Knows nothing of how it was measured (``edgeguard.bench``) or of the
form it is kept in (``edgeguard.budget.profile_json``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from edgeguard.budget.cost import PassCost, PassTimes

KINDS = ("provisional", "quick", "full")
"""``provisional`` knows prices but bounds nothing (its score is 1); the bench makes it on the way to the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """One whole request: from its scheduled release to the arrival of its answer, and what its passes should cost.

    ``dearest_ns`` is the price of the dearest answer that the same request could have had.
    """

    latency_ns: int
    price_ns: int
    dearest_ns: int

    @property
    def score(self) -> float:
        """How many times its price the request took."""
        return self.latency_ns / self.price_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """``bound_ns`` is the price of the dearest request seen times ``score``, the ``rank``-th largest score.

    It holds for ``percentile`` of all requests with ``confidence``. Of the ``n`` scores, ``effective_n`` (every
    ``lag``-th) count as independent.
    """

    bound_ns: int
    score: float
    rank: int
    percentile: float
    confidence: float
    n: int
    effective_n: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How it was measured: ``skipped`` releases found the request before still running, ``dropped`` requests fell into
    a time in which the fixed kernel found the machine busy; ``busy`` is the kernel's median factor over the rest.
    """

    period_ns: int
    skipped: int = 0
    dropped: int = 0
    busy: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One calibration. ``created`` is a label for people."""

    kind: str
    created: str
    fingerprint: Mapping[str, str]
    schedule: Schedule
    bound: Bound
    cost: PassCost
    sweep: tuple[PassTimes, ...]
    requests: tuple[RequestTimes, ...]

    def differences(self, fingerprint: Mapping[str, str]) -> list[str]:
        """What is not as it was when this was measured, as ``"governor: powersave -> performance"``."""
        return differences(self.fingerprint, fingerprint)


def differences(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Every key whose value is not the same in both, in the order of ``then``."""
    keys = dict.fromkeys((*then, *now))
    return [
        f"{key}: {then.get(key, 'not known')} -> {now.get(key, 'not known')}"
        for key in keys
        if then.get(key) != now.get(key)
    ]


def fingerprint_digest(fingerprint: Mapping[str, str]) -> str:
    """A short name for a fingerprint, the same whatever the order of its keys."""
    content = json.dumps(dict(sorted(fingerprint.items())), ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:20]
