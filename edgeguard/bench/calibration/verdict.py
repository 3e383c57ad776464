"""What a profile means for this robot, in the user's terms: does the bound fit, and how often will the guard step in?

Pure: everything is handed in. Nanoseconds inside, milliseconds in words. ``require_fit`` raises ``BoundError``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter

from edgeguard.bench.calibration.words import (
    bound_words,
    disturbed_words,
    duration,
    load_words,
    margin_words,
    ms,
    per_hour,
    tail_words,
    thermal_words,
    unbounded_words,
    worker_words,
)
from edgeguard.budget import Bound, Profile
from edgeguard.budget.bound import floor_n, miss_rate_bound
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.config import Config
from edgeguard.errors import BoundError
from edgeguard.runtime.budget_line import RESERVE_ASSUMED_NS
from edgeguard.runtime.serial_wire import command_wire_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """What of a deadline is not the model's: the observation's age, the frame on the line, the guard's reserve."""

    age_ns: int
    wire_ns: int
    reserve_ns: int

    @property
    def total_ns(self) -> int:
        return self.age_ns + self.wire_ns + self.reserve_ns


def overhead_of(config: Config, *, age_ns: int = 0) -> Overhead:
    """The configuration's, for observations that are ``age_ns`` old when they are handed over."""
    reserve_ns = config.timing.reserve_ns
    return Overhead(
        age_ns=age_ns,
        wire_ns=command_wire_ns(config),
        reserve_ns=RESERVE_ASSUMED_NS if reserve_ns is None else reserve_ns,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One profile against one configuration. ``misses`` of ``judged`` independent requests were late at this budget;
    ``miss_rate`` is the highest rate that this allows, with the profile's confidence. All three are of the worst cell
    (thermal level, rung, with or without a draft), and of a ladder's cells of the worst that this deadline lets run.
    """

    profile: Profile
    deadline_ns: int
    overhead: Overhead
    max_miss_rate: float
    misses: int
    judged: int
    miss_rate: float

    @property
    def available_ns(self) -> int:
        """What the deadline leaves for the model."""
        return self.deadline_ns - self.overhead.total_ns

    @property
    def slack_ns(self) -> int:
        """What the bound leaves of that; below zero it does not fit."""
        return self.available_ns - self.profile.bound.bound_ns

    @property
    def plans(self) -> tuple[str, ...]:
        """The rungs, if there is a choice between several."""
        return self.profile.rungs if len(self.profile.rungs) > 1 else ()

    def slack_of_ns(self, rung: str) -> int:
        """The same of one rung of a ladder of plans."""
        return self.available_ns - self.profile.bound_of(rung).bound_ns

    @property
    def fits(self) -> bool:
        """Of a ladder: whether the plan that promises most does."""
        return self.slack_ns >= 0

    @property
    def fitting_deadline_ms(self) -> int:
        """The least whole number of milliseconds that the bound would fit."""
        return -(-(self.profile.bound.bound_ns + self.overhead.total_ns) // NS_PER_MS)

    @property
    def rate_shown(self) -> bool:
        """Whether the measurement shows the miss rate that the user accepts."""
        return self.miss_rate <= self.max_miss_rate

    @property
    def between_interventions_s(self) -> float:
        """The mean time between two misses at ``miss_rate``."""
        return self.profile.schedule.period_ns / NS_PER_S / self.miss_rate

    @property
    def per_hour(self) -> float:
        """Interventions per hour at ``miss_rate``."""
        return 3_600 / self.between_interventions_s

    def rows(self) -> list[tuple[str, str]]:
        """The verdict in words: what is judged, and how it came out."""
        profile, schedule = self.profile, self.profile.schedule
        latencies_ns = sorted(one.latency_ns for one in profile.requests)
        return [
            *(("bound", bound_words(bound.times(profile.margin))) for bound in profile.bounds),
            *([("margin", margin_words(profile))] if profile.margin > 1 else []),
            *(("plan", self._plan_words(rung)) for rung in self.plans),
            ("fits", self._fit_words() if self.fits else f"no: {self._fit_words()}"),
            ("interventions", self._miss_words()),
            ("you accept", self._accepted_words()),
            ("a request took", f"median {ms(latencies_ns[len(latencies_ns) // 2])}, longest {ms(latencies_ns[-1])}"),
            ("measured", f"{len(latencies_ns):,} requests of {worker_words(schedule)}, one every "
                         f"{ms(schedule.period_ns)}; {load_words(schedule)}, busy x{schedule.busy:.2f}"),
            ("disturbed", disturbed_words(schedule)),
            ("thermal", thermal_words(profile)),
            *(("warning", words) for words in (unbounded_words(profile), tail_words(profile)) if words),
        ]  # fmt: skip

    def require_fit(self) -> None:
        """``BoundError`` when the bound does not fit, with the deadline that it would fit."""
        if not self.fits:
            raise BoundError(f"the bound does not fit the deadline: {self._fit_words()}")

    def _fit_words(self) -> str:
        parts = (
            f"the deadline of {ms(self.deadline_ns)} leaves {ms(self.available_ns)} for the model (observation's age "
            f"{ms(self.overhead.age_ns)}, wire {ms(self.overhead.wire_ns)}, reserve {ms(self.overhead.reserve_ns)})"
        )
        if self.fits:
            return f"yes, with {ms(self.slack_ns)} to spare: {parts}"
        return (
            f"{parts}, and the bound is {ms(self.profile.bound.bound_ns)}, {ms(-self.slack_ns)} too long; "
            f"deadline_ms = {self.fitting_deadline_ms} would fit; else shorten the answer or the prompt"
        )

    def _plan_words(self, rung: str) -> str:
        """Of one rung of a ladder: whether it can run at all within this deadline."""
        slack_ns = self.slack_of_ns(rung)
        fits = f"fits, with {ms(slack_ns)} to spare" if slack_ns >= 0 else f"does not fit, {ms(-slack_ns)} too long"
        cold = max(bound.level for bound in self.profile.bounds if bound.rung == rung) < self.profile.reached
        return f"{rung!r} {fits}" + (f"; never measured on a {self.profile.reached.label} board" if cold else "")

    def _miss_words(self) -> str:
        return (
            f"{self.misses} of {self.judged} independent requests were late at this budget: at most one intervention "
            f"in {duration(self.between_interventions_s)}, {per_hour(self.per_hour)} (miss rate at most "
            f"{self.miss_rate:.2%}, at {self.profile.confidence:.0%} confidence)"
        )

    def _accepted_words(self) -> str:
        accepted = f"max_miss_rate = {self.max_miss_rate:g}"
        if self.rate_shown:
            return f"{accepted}: shown"
        needed = floor_n(percentile=1 - self.max_miss_rate, confidence=self.profile.confidence)
        if self.misses or self.judged >= needed:
            return f"{accepted}: not shown, too many of these requests were late"
        takes_s = len(self.profile.bounds) * needed * self.profile.schedule.period_ns / NS_PER_S
        return (
            f"{accepted}: not shown by so few; it takes {needed:,} independent requests behind each bound, "
            f"{math.ceil(takes_s / 60)} min or more, without --quick"
        )


def judge(profile: Profile, *, config: Config, overhead: Overhead) -> Verdict:
    """The verdict on ``profile`` under the deadline and the accepted risk of ``config``."""
    available_ns = config.timing.deadline_ns - overhead.total_ns
    fitting = [bound for bound in profile.bounds if bound.times(profile.margin).bound_ns <= available_ns]
    run = fitting if fitting and len(profile.rungs) > 1 else profile.bounds
    misses, judged, miss_rate = max((_judge_cell(bound, profile, available_ns) for bound in run), key=_RATE)
    return Verdict(
        profile=profile,
        deadline_ns=config.timing.deadline_ns,
        overhead=overhead,
        max_miss_rate=config.risk.max_miss_rate,
        misses=misses,
        judged=judged,
        miss_rate=miss_rate,
    )


def _judge_cell(bound: Bound, profile: Profile, available_ns: int) -> tuple[int, int, float]:
    """Of one cell: the independent requests that were late, those that there are, and the rate that this allows.

    What counts as one request among those that were slow counts as one among those that were late. A way of decoding
    that has no bound of its own runs on this one's, and its requests count here.
    """
    bounded = {(one.level, one.rung, one.drafted) for one in profile.bounds}
    late = sum(
        one.latency_ns > available_ns
        for one in profile.requests
        if (one.level, one.rung) == (bound.level, bound.rung)
        and (one.drafted == bound.drafted or (one.level, one.rung, one.drafted) not in bounded)
    )
    misses = min(-(-late // bound.lag), bound.effective_n)
    return misses, bound.effective_n, miss_rate_bound(misses, bound.effective_n, confidence=bound.confidence)


_RATE = itemgetter(2)
