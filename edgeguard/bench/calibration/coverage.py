"""Does a bound hold? Calibration and check of one run that alternated between them, and how far they agree.

Requests come in turns of ``TURN``: one for calibration, one for the check, so that both see the same machine, whatever
it does. The bounds are made from the first as ``edgeguard calibrate`` makes them; every request of the second either
keeps to them or is beyond. ``calibration/coverage.py`` measures it and ``edgeguard report --coverage`` shows it. Pure,
but for reading and writing the file; ``ProfileError`` for one that cannot be used.

A bound at 95 % confidence is meant to be too high rather than too low: it should be exceeded by a smaller share than
the ``accepted`` one in 19 of 20 calibrations. So it ``holds`` unless the accepted share lies below the whole interval
of what was observed. The interval is by block bootstrap: turns are drawn, not requests, because slow ones come in runs;
where that is the narrower one, as of no request beyond, it is Clopper and Pearson's.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.bench.bootstrap import interval
from edgeguard.bench.calibration.scoring import bounds_of, by_cell
from edgeguard.bench.calibration.words import cell_name, percentile_name
from edgeguard.bench.percentile import percentile
from edgeguard.budget import Bound, RequestTimes
from edgeguard.budget.bound import miss_rate_bound
from edgeguard.clock import ms_from_ns
from edgeguard.errors import ProfileError
from edgeguard.plain import from_plain, to_plain

FORMAT = "edgeguard.coverage/1"
TURN = 100
SEED = 1
_DIGITS = 5
"""Of a score: finer than any clock that it came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCoverage:
    """One bound, the scores that it was made from, and, turn by turn, the scores that it was checked on.

    ``shares`` are what the checked requests took of the price of their own dearest answer: a request's bound in service
    is that price times the score of the bound.
    """

    bound: Bound
    calibrated: tuple[float, ...]
    checked: tuple[tuple[float, ...], ...]
    shares: tuple[float, ...]

    @property
    def n(self) -> int:
        return sum(map(len, self.checked))

    @property
    def beyond(self) -> int:
        """Requests that took longer than the bound allows for the passes that they made."""
        return sum(score > self.bound.score for turn in self.checked for score in turn)

    @property
    def beyond_in_service(self) -> int:
        """Those that took longer than the bound of their dearest answer, which is what the guard counts."""
        return sum(share > self.bound.score for share in self.shares)

    @property
    def rate(self) -> float:
        return self.beyond / self.n

    @property
    def accepted(self) -> float:
        return 1 - self.bound.percentile

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of ``rate``: never narrower than it would be of so many independent requests."""
        turns = [(sum(score > self.bound.score for score in turn), len(turn)) for turn in self.checked]

        def rate(at: Sequence[int]) -> float:
            return sum(turns[one][0] for one in at) / max(1, sum(turns[one][1] for one in at))

        low, high = interval(len(turns), rate, draw=random.Random(SEED))
        least = 1 - miss_rate_bound(self.n - self.beyond, self.n, confidence=0.975)
        return min(low, least), max(high, miss_rate_bound(self.beyond, self.n, confidence=0.975))

    @property
    def holds(self) -> bool:
        return self.interval[0] <= self.accepted

    @property
    def over_observed(self) -> float:
        """The bound over the same percentile of what was checked: 1 is as tight as can be, below 1 is too tight."""
        return self.bound.score / percentile([score for turn in self.checked for score in turn], self.bound.percentile)

    @property
    def stated_over_observed(self) -> float:
        """The same in service, where the bound is of the dearest answer and most answers are cheaper."""
        return self.bound.score / percentile(self.shares, self.bound.percentile)

    @property
    def words(self) -> str:
        low, high = self.interval
        return (
            f"{'holds' if self.holds else 'DOES NOT HOLD'}: of {self.n:,} requests {self.beyond} were beyond the bound "
            f"of {percentile_name(self.bound.percentile)} that {self.bound.n:,} others ({self.bound.effective_n:,} "
            f"independent) gave, {self.rate:.2%} [{low:.2%}, {high:.2%}], accepted {self.accepted:.2%}; bound over "
            f"observed {self.over_observed:.2f}, as stated in service {self.stated_over_observed:.2f}"
        )

    def document(self) -> dict[str, Any]:
        """Without the scores."""
        return {
            "level": self.bound.level.label,
            "rung": self.bound.rung,
            "drafted": self.bound.drafted,
            "percentile": self.bound.percentile,
            "confidence": self.bound.confidence,
            "calibrated": self.bound.n,
            "effective_n": self.bound.effective_n,
            "rank": self.bound.rank,
            "checked": self.n,
            "beyond": self.beyond,
            "beyond_in_service": self.beyond_in_service,
            "rate": self.rate,
            "interval": list(self.interval),
            "accepted": self.accepted,
            "over_observed": self.over_observed,
            "stated_over_observed": self.stated_over_observed,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """One run. ``busy`` is the fixed kernel's median factor in the gaps, ``None`` where there was none to time it in;
    of the ``blocks`` of ten requests a calibration would have dropped ``disturbed``. Nothing was dropped here."""

    created: str
    fingerprint: Mapping[str, str]
    period_ns: int
    blocks: int
    disturbed: int
    busy: float | None
    cells: tuple[CellCoverage, ...]

    @property
    def holds(self) -> bool:
        return all(cell.holds for cell in self.cells)

    def rows(self) -> list[tuple[str, str]]:
        """In words: every bound, and the machine."""
        busy = "there was no gap to tell in" if self.busy is None else f"×{self.busy:.2f}"
        dropped = f"a calibration would have dropped {self.disturbed} of {self.blocks} blocks of requests"
        return [*((cell_name(cell.bound), cell.words) for cell in self.cells), ("other load", f"{busy}; {dropped}")]

    def document(self) -> dict[str, Any]:
        """As one JSON object, without the scores."""
        return {
            "created": self.created,
            "period_ms": ms_from_ns(self.period_ns),
            "blocks": self.blocks,
            "disturbed": self.disturbed,
            "busy": self.busy,
            "holds": self.holds,
            "cells": [cell.document() for cell in self.cells],
        }


def take_turns(requests: Sequence[RequestTimes]) -> tuple[list[RequestTimes], list[list[RequestTimes]]]:
    """The requests of a run in their order: those of the calibration, and the turns of the check."""
    turns = [list(requests[at : at + TURN]) for at in range(0, len(requests), TURN)]
    return [one for turn in turns[::2] for one in turn], turns[1::2]


def check_bounds(requests: Sequence[RequestTimes], *, wanted: float, confidence: float) -> tuple[CellCoverage, ...]:
    """Every bound that the calibration's turns support, against the check's; ``BusyError`` when they support none."""
    calibration, check = take_turns(requests)
    calibrated, turns = by_cell(calibration), [by_cell(turn) for turn in check]
    cells = []
    for bound in bounds_of(calibration, wanted=wanted, confidence=confidence):
        cell = (bound.level, bound.rung, bound.drafted)
        checked = [turn.get(cell, ()) for turn in turns]
        if any(checked):
            cells.append(
                CellCoverage(
                    bound=bound,
                    calibrated=_scores(calibrated[cell]),
                    checked=tuple(_scores(turn) for turn in checked),
                    shares=tuple(round(one.latency_ns / one.dearest_ns, _DIGITS) for turn in checked for one in turn),
                )
            )
    return tuple(cells)


def _scores(requests: Sequence[RequestTimes]) -> tuple[float, ...]:
    return tuple(round(one.score, _DIGITS) for one in requests)


def write_coverage(coverage: Coverage, file: Path) -> None:
    try:
        file.write_text(json.dumps({"format": FORMAT, "coverage": to_plain(coverage)}) + "\n", encoding="utf-8")
    except OSError as error:
        raise ProfileError(f"{file}: the coverage cannot be written: {error.strerror}; name another --out") from error


def read_coverage(file: Path) -> Coverage:
    """What ``write_coverage`` has written."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"is no {FORMAT}")
        return from_plain(Coverage, content.get("coverage"))
    except (OSError, ValueError) as error:
        raise ProfileError(f"{file}: is not what calibration/coverage.py has written: {error}") from error
