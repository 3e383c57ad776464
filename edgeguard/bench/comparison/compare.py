"""What several models are worth beside one another: quality, time, memory, and in words whether it is a good trade.

The first model is the reference of every difference. Pure: runs and probabilities are handed in. Nanoseconds and bytes;
shares are fractions of 1.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from edgeguard.bench.bootstrap import interval
from edgeguard.bench.calibration.scoring import name_bound
from edgeguard.bench.comparison.contest import Run
from edgeguard.bench.comparison.likeness import Paths, mean_divergence
from edgeguard.bench.comparison.proportion import Paired, Share
from edgeguard.bench.comparison.reliability import Reliability, reliability
from edgeguard.budget.cost import median

SEED = 1
SIGNIFICANT = 0.05
SAME_TIME = 0.03
"""Medians closer than this are the same time."""

HIGHEST_PERCENTILE = 0.99

LEAST_TIMES = 1.2
"""From here on a change is told as so many times, below it in percent."""

TOLERATED_LOSS = 0.02
"""A difference is called no loss when its interval shows that it is at most this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBound:
    """The ``percentile`` of the time to command is at most ``bound_ns``, with the confidence of the configuration.

    An order statistic of requests of which ``effective_n`` count as independent. Quick, and no calibration: that has
    the robot's own rhythm.
    """

    percentile: float
    bound_ns: int
    effective_n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagShare:
    """The cases with one tag."""

    tag: str
    exact: Share
    fields: dict[str, Share]


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Beside the reference: ``times_faster`` is the median over the cases of its time by the model's, and its 95 %
    interval."""

    paired: Paired
    agreement: Share
    divergence: float | None
    times_faster: float
    times_interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One model. ``against`` is None for the reference itself; ``fields`` are of the cases in which they matter."""

    name: str
    exact: Share
    fields: dict[str, Share]
    tags: tuple[TagShare, ...]
    median_ns: int
    bound: TimeBound | None
    bytes_per_pass: int
    resident_bytes: int
    prefix_tokens: int
    reliability: Reliability | None
    against: Against | None

    @property
    def verdict(self) -> str:
        return "the reference" if self.against is None else _verdict(self.against)


def compare(
    runs: Sequence[Run], paths: Sequence[Paths], *, bytes_per_pass: Sequence[int], confidence: float
) -> tuple[Row, ...]:
    """A row per run, in the same order; ``confidence`` is the time bounds'."""
    return tuple(
        _row(run, own, size, runs[0], paths[0], confidence=confidence)
        for run, own, size in zip(runs, paths, bytes_per_pass, strict=True)
    )


def _row(run: Run, paths: Paths, size: int, reference: Run, reference_paths: Paths, *, confidence: float) -> Row:
    tags = dict.fromkeys(tag for outcome in run.outcomes for tag in outcome.case.tags)
    times_ns = run.times_ns
    return Row(
        name=run.contender.name,
        exact=Share.of(outcome.exact for outcome in run.outcomes),
        fields=_fields(run, tag=None),
        tags=tuple(
            TagShare(
                tag=tag,
                exact=Share.of(outcome.exact for outcome in run.outcomes if tag in outcome.case.tags),
                fields=_fields(run, tag=tag),
            )
            for tag in sorted(tags)
        ),
        median_ns=round(median(times_ns)),
        bound=_bound(times_ns, confidence=confidence),
        bytes_per_pass=size,
        resident_bytes=run.resident_bytes,
        prefix_tokens=run.prefix_tokens,
        reliability=reliability(run.outcomes),
        against=None if run is reference else _against(run, reference, mean_divergence(reference_paths, paths)),
    )


def _fields(run: Run, *, tag: str | None) -> dict[str, Share]:
    verdicts: dict[str, list[bool]] = {}
    for outcome in run.outcomes:
        if tag is None or tag in outcome.case.tags:
            for name, right in outcome.judged.items():
                verdicts.setdefault(name, []).append(right)
    return {name: Share.of(verdicts[name]) for name in sorted(verdicts)}


def _bound(times_ns: Sequence[int], *, confidence: float) -> TimeBound | None:
    """Of the highest percentile up to ``HIGHEST_PERCENTILE`` that they support; None when they support none."""
    named = name_bound(times_ns, wanted=HIGHEST_PERCENTILE, confidence=confidence) if len(times_ns) > 1 else None
    if named is None:
        return None
    return TimeBound(percentile=named.percentile, bound_ns=round(named.score), effective_n=named.dependence.effective_n)


def _against(run: Run, reference: Run, divergence: float | None) -> Against:
    ratios = [theirs / own for own, theirs in zip(run.times_ns, reference.times_ns, strict=True)]
    return Against(
        paired=Paired.of((one.exact for one in run.outcomes), (one.exact for one in reference.outcomes)),
        agreement=Share.of(
            one.values is not None and one.values == other.values
            for one, other in zip(run.outcomes, reference.outcomes, strict=True)
        ),
        divergence=divergence,
        times_faster=median(ratios),
        times_interval=interval(len(ratios), lambda at: median([ratios[one] for one in at]), draw=random.Random(SEED)),
    )


def _verdict(against: Against) -> str:
    """``1.9× faster and 11 ± 4 points worse: not a good trade``."""
    paired, faster, (low, high) = against.paired, against.times_faster, against.times_interval
    times = max(faster, 1 / faster)
    differs, sure = times > 1 + SAME_TIME, not low <= 1 <= high
    quicker, slower = differs and sure and faster > 1, differs and sure and faster < 1
    speed = f"{times:.1f}×" if times >= LEAST_TIMES else f"{times - 1:.0%}"
    speed = f"{'' if sure else 'perhaps '}{speed} {'faster' if faster > 1 else 'slower'}" if differs else "as fast"
    points = f"{abs(paired.difference) * 100:.0f} ± {paired.half_width * 100:.0f} points"
    if paired.p_value < SIGNIFICANT and paired.difference > 0:
        judgement = "better costs time" if slower else "take it"
        return f"{speed} and {points} better: {judgement}"
    if paired.p_value < SIGNIFICANT:
        judgement = "not a good trade" if quicker else "no reason to take it"
        return f"{speed} and {points} worse: {judgement}"
    if paired.difference - paired.half_width >= -TOLERATED_LOSS:
        judgement = ": take it" if quicker else ": no reason to take it" if slower else ""
        return f"{speed} at no loss{judgement}"
    most = (paired.half_width - paired.difference) * 100
    return f"{speed}, no loss shown in {paired.n} cases, but up to {most:.0f} points are possible: ask more"
