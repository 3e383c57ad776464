"""A calibration profile: what was measured, on what, and the bounds that follow. Data only.

Durations are nanoseconds, temperatures degrees Celsius, percentiles and confidences fractions of 1. A profile belongs
to one fingerprint: ``differences`` says in words what is not the same. Its bounds are one a cell: a thermal level, a
rung of the ladder of plans, with or without a draft. Knows nothing of how it was measured (``edgeguard.bench``) or of
the form it is kept in (``edgeguard.budget.profile_json``).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from edgeguard.budget.cost import OtherModel, PassCost, PassTimes, cost_of
from edgeguard.types.board import ThermalLevel

KINDS = ("provisional", "quick", "full")
"""``provisional`` knows prices but bounds nothing (its score is 1); the bench makes it on the way to the others."""

THERMAL = ("unobserved", "observed")
"""Whether a sensor said how hot the board was; ``unobserved``: all samples count as ``nominal``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """One whole request: from its scheduled release to the arrival of its answer, and what its passes should cost.

    ``dearest_ns`` is the price of the dearest answer that the same request could have had. ``at_ns`` counts from the
    start of the run. Its first pass had ``first_tokens`` new tokens and was done ``ttft_ns`` after the work began.
    ``temperature_c`` (the hottest sensor) and ``clock_mhz`` are ``None`` where nothing can be read.
    """

    latency_ns: int
    price_ns: int
    dearest_ns: int
    at_ns: int = 0
    level: ThermalLevel = ThermalLevel.NOMINAL
    rung: str = ""
    drafted: bool = False
    first_tokens: int = 0
    ttft_ns: int = 0
    temperature_c: float | None = None
    clock_mhz: float | None = None

    @property
    def score(self) -> float:
        """How many times its price the request took."""
        return self.latency_ns / self.price_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """``bound_ns`` is the price of the dearest request seen times ``score``, the ``rank``-th largest score.

    It holds for ``percentile`` of all requests of this level, rung and way of decoding, with ``confidence``. Of the
    ``n`` scores, ``effective_n`` (one of every ``lag``) count as independent. ``ljung_box_p`` is the p-value of
    "these are independent"; ``gpd_shape`` the shape of the tail beyond the 90th percentile: above 0 the tail is heavy
    and the longest request is still to come. Both are warnings only: neither moves the bound.
    """

    bound_ns: int
    score: float
    rank: int
    percentile: float
    confidence: float
    n: int
    effective_n: int
    lag: int
    level: ThermalLevel = ThermalLevel.NOMINAL
    rung: str = ""
    drafted: bool = False
    ljung_box_p: float | None = None
    gpd_shape: float | None = None

    def times(self, factor: float) -> Bound:
        """A bound that much longer."""
        return replace(self, bound_ns=math.ceil(self.bound_ns * factor), score=self.score * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How it was measured: ``skipped`` releases found the request before still running, ``dropped`` requests fell into
    a time in which the fixed kernel found the machine busy; ``busy`` is the kernel's median factor over the rest.

    The requests were shared among ``workers`` processes, one after the other. ``beside`` is the robot's own software
    that ran meanwhile; empty: measured alone.
    """

    period_ns: int
    skipped: int = 0
    dropped: int = 0
    busy: float = 1.0
    workers: int = 1
    beside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """How the board was heated, and whether that got as far as it goes: both must be flat.

    ``heater`` names the co-load. ``temperature_flat`` is ``None`` where no sensor says.
    """

    elapsed_ns: int
    heater: str
    latency_flat: bool
    temperature_flat: bool | None = None
    start_c: float | None = None
    end_c: float | None = None

    @property
    def reached(self) -> bool:
        """Whether this is the thermal limit, as far as anybody can tell."""
        return self.latency_flat and self.temperature_flat is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One calibration. ``created`` is a label for people. ``margin`` (at least 1) stretches every bound in service: a
    quick calibration has seen neither heat nor restarts. ``soak`` is ``None`` when the board was not heated.
    ``placement`` says, in the worker's words, which provider ran which operators; it is no part of the fingerprint,
    because that is known before a model is opened. Empty where the worker said nothing of it. ``cost`` and ``sweep``
    are of the best rung's model, ``others`` of those that other rungs ask.
    """

    kind: str
    created: str
    fingerprint: Mapping[str, str]
    schedule: Schedule
    bounds: tuple[Bound, ...]
    cost: PassCost
    sweep: tuple[PassTimes, ...]
    requests: tuple[RequestTimes, ...]
    thermal: str = "unobserved"
    margin: float = 1.0
    soak: Soak | None = None
    placement: str = ""
    others: tuple[OtherModel, ...] = ()

    @property
    def bound(self) -> Bound:
        """What is promised in service at every level that was reached: the longest of a rung's bounds without a draft,
        for a draft is run only where its own bound fits too. Of several rungs, those of the one that promises most,
        for it runs where no better one fits.
        """
        reached = {bound.rung for bound in self.bounds if bound.level is self.reached}
        return min(map(self.bound_of, sorted(reached)), key=_LENGTH)

    def bound_of(self, rung: str) -> Bound:
        """What is promised of this rung at every level that it was measured at."""
        cell = [bound for bound in self.bounds if bound.rung == rung]
        return max([one for one in cell if not one.drafted] or cell, key=_LENGTH).times(self.margin)

    @property
    def rungs(self) -> tuple[str, ...]:
        """The rungs that have a bound, in the order of the bounds."""
        return tuple(dict.fromkeys(bound.rung for bound in self.bounds))

    @property
    def by_model(self) -> tuple[Profile, ...]:
        """One for each model, the best rung's first: its prices, and bounds and requests of the rungs that ask it."""
        others = {rung for one in self.others for rung in one.rungs}
        asking = dict.fromkeys([*self.rungs, *(one.rung for one in self.requests)])
        first = OtherModel(rungs=tuple(rung for rung in asking if rung not in others), cost=self.cost, sweep=self.sweep)
        return tuple(
            replace(
                self,
                cost=one.cost,
                sweep=one.sweep,
                others=(),
                bounds=tuple(bound for bound in self.bounds if bound.rung in one.rungs),
                requests=tuple(request for request in self.requests if request.rung in one.rungs),
            )
            for one in (first, *self.others)
        )

    def cost_of(self, rung: str) -> PassCost:
        """What a pass costs of the model that this rung asks."""
        return cost_of(rung, first=self.cost, others=self.others)

    @property
    def confidence(self) -> float:
        """What every bound holds with."""
        return min(bound.confidence for bound in self.bounds)

    @property
    def reached(self) -> ThermalLevel:
        """The harshest level that has a bound."""
        return max(bound.level for bound in self.bounds)

    def bound_for(
        self, level: ThermalLevel, *, rung: str = "", drafted: bool = False, beyond: float | None = None
    ) -> Bound | None:
        """The bound in service at ``level``, margin included; ``None`` when the board was never that hot, or with
        ``beyond`` so many times the worst that is known.

        Monotone: the greatest of this level's and all milder ones', or, where this one has none of its own, the next
        harsher one's. Where no sensor told how hot it was, the worst that was measured holds at any time. A way of
        decoding, with a draft or without, that was not measured there has the score of the other one: a score says how
        far requests lie above the price of the passes that they made.
        """
        if self.thermal == "unobserved":
            level = max(level, self.reached)
        for kind in (drafted, not drafted):
            cell = [bound for bound in self.bounds if (bound.rung, bound.drafted) == (rung, kind)]
            harsher = [bound.level for bound in cell if bound.level >= level]
            known = [bound for bound in cell if bound.level <= min(harsher, default=level)]
            if known and (harsher or beyond):
                worst = max(known, key=lambda bound: bound.score)
                longest_ns = max(bound.bound_ns for bound in known)
                factor = self.margin if harsher else self.margin * (beyond or 1.0)
                return replace(worst, level=level, bound_ns=longest_ns).times(factor)
        return None

    def score_for(
        self, level: ThermalLevel, *, rung: str = "", drafted: bool = False, beyond: float | None = None
    ) -> float | None:
        """What a price is multiplied by in service. With a draft at least as much as without: in calibration most are
        right and save passes, and what is between two passes has no price of its own.
        """
        ways = (False, True) if drafted else (False,)
        bounds = [self.bound_for(level, rung=rung, drafted=way, beyond=beyond) for way in ways]
        return max((bound.score for bound in bounds if bound is not None), default=None)

    def differences(self, fingerprint: Mapping[str, str], *, placement: str = "") -> list[str]:
        """What is not as it was when this was measured, as ``"governor: powersave -> performance"``.

        ``placement`` is compared where both say one.
        """
        then = {"placement": self.placement} if self.placement and placement else {}
        now = {"placement": placement} if then else {}
        return differences({**self.fingerprint, **then}, {**fingerprint, **now})


_LENGTH = attrgetter("bound_ns")


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
