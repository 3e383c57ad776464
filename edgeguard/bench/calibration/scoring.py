"""From samples to a profile's numbers: the cost fitted on one part, whole requests scored on the other, the bounds.

Pure. A request's score is what it took over the price of the passes it made; the bound of a cell (a thermal level, a
rung, with or without a draft) is the price of the dearest answer that any of its requests could have had, times the
score that order statistics allow to be named. Scores are in the order in which they were taken, because what follows
one another depends on one another (``edgeguard.budget.effective``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from edgeguard.bench.calibration.sample import Sample
from edgeguard.bench.calibration.tail import gpd_shape
from edgeguard.budget import Bound, PassCost, PassTimes, RequestTimes
from edgeguard.budget.bound import floor_n, percentiles_from, rank
from edgeguard.budget.cost import median
from edgeguard.budget.effective import Dependence, dependence, ljung_box_p
from edgeguard.errors import BusyError, WorkerError
from edgeguard.types import ThermalLevel

Cell: TypeAlias = tuple[ThermalLevel, str, bool]
"""Level, rung, whether a draft was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The highest percentile that scores support, and the score that bounds it: the ``rank``-th largest."""

    percentile: float
    score: float
    rank: int
    dependence: Dependence


def fit_cost(sweep: Sequence[PassTimes], samples: Sequence[Sample], *, stepped: bool = False) -> PassCost:
    """The price of a pass from the sweep and from real requests, and what a request costs beside its passes.

    ``stepped``: there are no passes of other sizes.
    """
    seen: dict[tuple[int, int], list[int]] = {}
    for sample in samples:
        for one in sample.passes:
            seen.setdefault((one.k, one.p), []).append(one.elapsed_ns)
    observed = [PassTimes(k=k, p=p, elapsed_ns=tuple(elapsed_ns)) for (k, p), elapsed_ns in seen.items()]
    beside_ns = [sample.latency_ns - sum(one.elapsed_ns for one in sample.passes) for sample in samples]
    return PassCost.fit(sweep, observed=observed, stepped=stepped).with_constant(max(0, round(median(beside_ns))))


def price_requests(
    samples: Sequence[Sample], cost_of: Callable[[str], PassCost], *, levels: Sequence[ThermalLevel] | None = None
) -> tuple[RequestTimes, ...]:
    """Each request beside its prices (``cost_of`` its rung), at the level that it counts for (by default nominal).

    The samples are of a worker whose profile has these prices and the score 1, so that the bound it states is the price
    of its dearest answer; ``WorkerError`` when it states none.
    """
    requests = []
    for sample, level in zip(samples, levels or [ThermalLevel.NOMINAL] * len(samples), strict=True):
        if sample.dearest_ns is None:
            raise WorkerError("the worker was given prices and does not state the bound of a request")
        requests.append(
            RequestTimes(
                latency_ns=sample.latency_ns,
                price_ns=cost_of(sample.rung).passes_ns((one.k, one.p) for one in sample.passes),
                dearest_ns=sample.dearest_ns,
                at_ns=sample.at_ns,
                level=level,
                rung=sample.rung,
                drafted=sample.drafted,
                first_tokens=sample.passes[0].k,
                ttft_ns=sample.ttft_ns,
                temperature_c=sample.look.temperature_c,
                clock_mhz=sample.look.clock_mhz,
            )
        )
    return tuple(requests)


def by_cell(requests: Sequence[RequestTimes]) -> Mapping[Cell, Sequence[RequestTimes]]:
    """The requests of each cell, in their order; the mildest level first."""
    cells: dict[Cell, list[RequestTimes]] = {}
    for one in requests:
        cells.setdefault((one.level, one.rung, one.drafted), []).append(one)
    return dict(sorted(cells.items()))


def name_bound(scores: Sequence[float], *, wanted: float, confidence: float) -> Named | None:
    """The bound of the ``wanted`` percentile, or of the highest below it that so many independent scores support.

    ``None`` when they support none at all.
    """
    for percentile in percentiles_from(wanted):
        found = dependence(scores, percentile=percentile)
        order = rank(len(scores), percentile=percentile, confidence=confidence, inflation=found.inflation)
        if order and found.effective_n >= floor_n(percentile=percentile, confidence=confidence):
            score = float(np.partition(np.asarray(scores, dtype=np.float64), -order)[-order])
            return Named(percentile=percentile, score=score, rank=order, dependence=found)
    return None


def bounds_of(requests: Sequence[RequestTimes], *, wanted: float, confidence: float) -> tuple[Bound, ...]:
    """The bound of every cell that has requests enough for one.

    ``BusyError`` when none has: latencies that drift for minutes on end are no sample of anything.
    """
    bounds = []
    for (level, rung, drafted), cell in by_cell(requests).items():
        scores = [one.score for one in cell]
        named = name_bound(scores, wanted=wanted, confidence=confidence)
        if named is not None:
            bounds.append(
                Bound(
                    bound_ns=math.ceil(max(one.dearest_ns for one in cell) * named.score),
                    score=named.score,
                    rank=named.rank,
                    percentile=named.percentile,
                    confidence=confidence,
                    n=len(scores),
                    effective_n=named.dependence.effective_n,
                    lag=named.dependence.lag,
                    level=level,
                    rung=rung,
                    drafted=drafted,
                    ljung_box_p=ljung_box_p(scores),
                    gpd_shape=gpd_shape(scores),
                )
            )
    if not bounds:
        found = dependence([one.score for one in requests], percentile=wanted)
        raise BusyError(
            f"{len(requests)} requests count as only {found.effective_n} independent ones (one of {found.lag}), and no "
            "bound can be named: they were too few, or latency drifts all the time; see what else this machine does, "
            "and try again"
        )
    return tuple(bounds)


def still_needed(requests: Sequence[RequestTimes], *, wanted: float, confidence: float) -> int:
    """How many more requests it takes, as far as these can tell, until every cell names the ``wanted`` percentile.

    Asked again only when so many have come: to look after every request, and stop at the first look that pleases,
    would choose the samples by what they say. A cell that one request in fifty or fewer belongs to is not waited for.
    """
    needed = 0
    floor = floor_n(percentile=wanted, confidence=confidence)
    for cell in by_cell(requests).values():
        found = dependence([one.score for one in cell], percentile=wanted)
        if found.effective_n < floor and 50 * len(cell) > len(requests):
            missing = math.ceil(floor * found.inflation) - len(cell)
            needed = max(needed, math.ceil(missing * len(requests) / len(cell)))
    return needed


def provisional_bounds(rungs: Sequence[str] = ("",)) -> tuple[Bound, ...]:
    """Prices without a score, so that a worker says what the dearest answer of each rung should cost, with and without
    a draft.
    """
    none = Bound(bound_ns=1, score=1.0, rank=0, percentile=0.0, confidence=0.0, n=0, effective_n=0, lag=1)
    return tuple(replace(none, rung=rung, drafted=drafted) for rung in rungs for drafted in (False, True))
