"""From samples to a profile's numbers: the cost fitted on one part, whole requests scored on the other, the bound.

Pure. A request's score is what it took over the price of the passes it made; the bound is the price of the dearest
answer that any of these requests could have had, times the score that order statistics allow to be named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from edgeguard.bench.sampling import Sample
from edgeguard.budget import Bound, PassCost, PassTimes, RequestTimes
from edgeguard.budget.bound import highest_percentile, order_bound, rank
from edgeguard.budget.cost import median
from edgeguard.budget.effective import dependence, thin
from edgeguard.errors import BusyError, WorkerError


def fit_cost(sweep: Sequence[PassTimes], samples: Sequence[Sample]) -> PassCost:
    """The price of a pass from the sweep and from real requests, and what a request costs beside its passes."""
    seen: dict[tuple[int, int], list[int]] = {}
    for sample in samples:
        for one in sample.answer.passes:
            seen.setdefault((one.k, one.p), []).append(one.elapsed_ns)
    observed = [PassTimes(k=k, p=p, elapsed_ns=tuple(elapsed_ns)) for (k, p), elapsed_ns in seen.items()]
    beside_ns = [sample.latency_ns - sum(one.elapsed_ns for one in sample.answer.passes) for sample in samples]
    return PassCost.fit(sweep, observed=observed).with_constant(max(0, round(median(beside_ns))))


def price_requests(samples: Sequence[Sample], cost: PassCost) -> tuple[RequestTimes, ...]:
    """Each request beside its prices. The samples are of a worker whose profile has these prices and the score 1, so
    that the bound it states is the price of its dearest answer; ``WorkerError`` when it states none.
    """
    requests = []
    for sample in samples:
        if sample.answer.bound_ns is None:
            raise WorkerError("the worker was given prices and does not state the bound of a request")
        price_ns = cost.passes_ns((one.k, one.p) for one in sample.answer.passes)
        requests.append(
            RequestTimes(latency_ns=sample.latency_ns, price_ns=price_ns, dearest_ns=sample.answer.bound_ns)
        )
    return tuple(requests)


def still_needed(requests: Sequence[RequestTimes], *, independent: int) -> int:
    """How many requests it takes in all, as far as these can tell, for so many of them to count as independent.

    Asked again only when so many are there: to look after every request, and stop at the first look that pleases,
    would choose the samples by what they say.
    """
    found = dependence([one.score for one in requests])
    return len(requests) if found.effective_n >= independent else independent * found.lag


def bound_of(requests: Sequence[RequestTimes], *, wanted: float, confidence: float) -> Bound:
    """The bound of the ``wanted`` percentile, or of the highest that so many independent requests support.

    ``BusyError`` when they support none: latencies that drift for minutes on end are no sample of anything.
    """
    scores = [one.score for one in requests]
    found = dependence(scores)
    percentile = highest_percentile(found.effective_n, confidence=confidence, wanted=wanted)
    score = None
    if percentile is not None:
        score = order_bound(thin(scores, lag=found.lag), percentile=percentile, confidence=confidence)
    if percentile is None or score is None:
        raise BusyError(
            f"{len(scores)} requests count as only {found.effective_n} independent ones (every {found.lag}th): latency "
            "drifts all the time and no bound can be named; see what else this machine does, and calibrate again"
        )
    return Bound(
        bound_ns=math.ceil(max(one.dearest_ns for one in requests) * score),
        score=score,
        rank=rank(found.effective_n, percentile=percentile, confidence=confidence),
        percentile=percentile,
        confidence=confidence,
        n=len(scores),
        effective_n=found.effective_n,
        lag=found.lag,
    )


def provisional_bound() -> Bound:
    """Prices without a score, so that a worker says what its dearest answer should cost."""
    return Bound(bound_ns=1, score=1.0, rank=0, percentile=0.0, confidence=0.0, n=0, effective_n=0, lag=1)
