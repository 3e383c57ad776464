"""Whether the stated confidence of answers can be believed: of answers stated with 0.9, are nine of ten right?

The cases are put into groups of equal size by their confidence (equal widths would leave most groups empty: a model is
mostly sure). The gap is the mean over all answers of |stated - found| of their group: the expected calibration error
(Naeini et al. 2015) with adaptive groups. A threshold is worth what it keeps and how much of that is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgeguard.bench.comparison.contest import Outcome
from edgeguard.bench.comparison.proportion import Share

GROUPS = 10
LEAST_PER_GROUP = 10
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Answers that were stated with nearly the same confidence, and how many of them are right."""

    stated: float
    right: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """If answers below ``confidence`` were refused: what is ``kept`` of all, and ``right`` of those kept."""

    confidence: float
    kept: Share
    right: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    groups: tuple[Group, ...]
    gap: float
    thresholds: tuple[Threshold, ...]


def reliability(outcomes: Sequence[Outcome]) -> Reliability | None:
    """Of those with a stated confidence; None when there are none."""
    stated = sorted(
        ((outcome.confidence, outcome.exact) for outcome in outcomes if outcome.confidence is not None),
        key=lambda pair: pair[0],
    )
    if not stated:
        return None
    count = max(1, min(GROUPS, len(stated) // LEAST_PER_GROUP))
    ends = [len(stated) * at // count for at in range(count + 1)]
    groups = []
    for begin, end in pairwise(ends):
        part = stated[begin:end]
        groups.append(Group(stated=sum(one for one, _ in part) / len(part), right=Share.of(exact for _, exact in part)))
    gap = sum(abs(group.stated - group.right.value) * group.right.n for group in groups) / len(stated)
    return Reliability(groups=tuple(groups), gap=gap, thresholds=tuple(_threshold(stated, at) for at in THRESHOLDS))


def _threshold(stated: Sequence[tuple[float, bool]], confidence: float) -> Threshold:
    kept = [exact for one, exact in stated if one >= confidence]
    return Threshold(confidence=confidence, kept=Share(hits=len(kept), n=len(stated)), right=Share.of(kept))
