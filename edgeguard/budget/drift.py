"""Whether requests still keep to their bound: a Shiryaev-Roberts e-detector, fed with one indicator a request.

The bound promises that a request exceeds it with probability ``alpha`` at most. ``e`` is 1 for a request that did. As
long as the promise holds, each factor ``1 + bet * (e - alpha)`` has a mean of at most 1. So the evidence
``M = (1 + M) * factor``, minus the number of requests, is a supermartingale, and the mean time until ``M >= A`` is at
least ``A`` requests (Shin, Ramdas and Rinaldo, "E-detectors", arXiv:2203.03532; Roberts 1966). ``M`` never falls below
0, so it is as watchful after a million good requests as after ten. Each bet is best against one rate ``p``,
``1 + bet * (1 - alpha) = p / alpha``; the mean over all of them loses little against any.

Requests that follow one another share the machine's state, so every ``lag``-th belongs to a stream of its own, and the
evidence of the streams is added: the sum grows by at most 1 a request in the mean, as one stream would.

Pure; counts requests, not time. Knows no bound and no clock: what ``e`` is, ``edgeguard.guard.forecast`` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgeguard.clock import NS_PER_S

BETS = (1.0, 4.0, 16.0, 64.0)

MOST_AT_STAKE = 0.9
"""One request within the bound takes at most so much of the evidence: ``bet * alpha`` stays below 1."""

FALSE_ALARM_EVERY_NS = 1_000 * 3_600 * NS_PER_S
"""The mean time between false alarms of a robot whose profile is true: 1,000 hours, or more."""

REPROOF = 59
"""So many requests within the bound, in a row, end an alarm: 0.95 ** 59 < 0.05, so at 95 % confidence fewer than one in
twenty exceeds it (what the floor of ``budget.bound`` says of p95)."""

RECENT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What is known after ``seen`` requests. ``evidence`` has a row a stream, and in it one number a bet.

    ``recent`` has a bit for each of the last ``RECENT`` requests, the newest the lowest: 1 for one that exceeded.
    """

    evidence: tuple[tuple[float, ...], ...] = ()
    seen: int = 0
    recent: int = 0
    alarmed: bool = False

    @property
    def total(self) -> float:
        """The evidence for a drift: of all streams, the mean over the bets."""
        return _total(self.evidence)

    @property
    def exceeded(self) -> int:
        """How many of the last ``known`` requests exceeded the bound."""
        return self.recent.bit_count()

    @property
    def known(self) -> int:
        return min(self.seen, RECENT)

    def after(self, *, exceeded: bool, alpha: float, lag: int, alarm_at: float) -> Drift:
        """One request later. An alarm that is on stays until ``REPROOF`` requests in a row have kept to the bound."""
        seen, recent = self.seen + 1, (self.recent << 1 | exceeded) & (1 << RECENT) - 1
        if self.alarmed:
            proven = recent & (1 << REPROOF) - 1 == 0
            return Drift(
                evidence=() if proven else self.evidence,  # of which there is enough
                seen=seen,
                recent=recent,
                alarmed=not proven,
            )
        rows = list(self.evidence) or [(0.0,) * len(BETS)] * lag
        most, surprise = MOST_AT_STAKE / alpha, exceeded - alpha
        stream = self.seen % lag
        rows[stream] = tuple(
            [(1.0 + before) * (1.0 + min(bet, most) * surprise) for bet, before in zip(BETS, rows[stream], strict=True)]
        )
        return Drift(evidence=tuple(rows), seen=seen, recent=recent, alarmed=_total(rows) >= alarm_at)


def _total(rows: Iterable[tuple[float, ...]]) -> float:
    return sum(map(sum, rows)) / len(BETS)


def requests_per_false_alarm(period_ns: int) -> float:
    """The evidence at which a robot that asks once a period raises the alarm."""
    return FALSE_ALARM_EVERY_NS / period_ns
