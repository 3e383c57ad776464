"""Fitting on one part, scoring on the other, and the bound that is the dearest price times a score."""

from __future__ import annotations

import random

import pytest

from edgeguard.bench.sampling import Sample
from edgeguard.bench.scoring import bound_of, fit_cost, price_requests, provisional_bound, still_needed
from edgeguard.budget import PassCost, PassTimes, RequestTimes
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import BusyError, WorkerError
from edgeguard.types import Answer, Finish, Pass

SWEEP = [PassTimes(k=k, p=100, elapsed_ns=((8 + k) * NS_PER_MS,)) for k in (2, 4, 8, 16, 32)]


def _sample(passes: list[tuple[int, int, float]], *, latency_ms: float, bound_ms: float | None = 60) -> Sample:
    answer = Answer(
        request_id=1,
        epoch=0,
        finish=Finish.COMPLETE,
        bound_ns=None if bound_ms is None else round(bound_ms * NS_PER_MS),
        passes=tuple(Pass(k=k, p=p, elapsed_ns=round(ms * NS_PER_MS)) for k, p, ms in passes),
    )
    return Sample(latency_ns=round(latency_ms * NS_PER_MS), answer=answer)


def _requests(scores: list[float], *, price_ms: float = 100, dearest_ms: float = 120) -> list[RequestTimes]:
    return [
        RequestTimes(
            latency_ns=round(score * price_ms * NS_PER_MS),
            price_ns=round(price_ms * NS_PER_MS),
            dearest_ns=round(dearest_ms * NS_PER_MS),
        )
        for score in scores
    ]


def test_the_constant_is_what_a_request_takes_beside_its_passes() -> None:
    samples = [_sample([(16, 100, 24), (2, 116, 10)], latency_ms=34 + beside) for beside in (2, 3, 50)]
    cost = fit_cost(SWEEP, samples)
    assert cost.constant_ns == 3 * NS_PER_MS
    assert cost.price_ns(16, 100) == 24 * NS_PER_MS


def test_a_request_is_priced_by_the_passes_it_made_and_by_its_dearest_answer() -> None:
    cost = PassCost.fit(SWEEP).with_constant(2 * NS_PER_MS)
    (one,) = price_requests([_sample([(16, 100, 99), (2, 116, 99)], latency_ms=50, bound_ms=72)], cost)
    assert (one.price_ns, one.dearest_ns) == (36 * NS_PER_MS, 72 * NS_PER_MS)
    assert one.score == pytest.approx(50 / 36)


def test_a_worker_that_states_no_bound_cannot_be_scored() -> None:
    with pytest.raises(WorkerError, match="does not state the bound"):
        price_requests([_sample([(2, 100, 10)], latency_ms=12, bound_ms=None)], PassCost.fit(SWEEP))


def test_the_bound_is_the_dearest_price_times_the_largest_score_when_there_are_just_enough() -> None:
    scores = [1.0 + 0.001 * (i * 7919 % 299) for i in range(299)]
    bound = bound_of(_requests(scores), wanted=0.99, confidence=0.95)
    assert (bound.percentile, bound.rank, bound.n, bound.effective_n, bound.lag) == (0.99, 1, 299, 299, 1)
    assert bound.score == pytest.approx(1.298)
    assert bound.bound_ns == pytest.approx(1.298 * 120 * NS_PER_MS, rel=1e-6)


def test_of_many_the_largest_may_be_passed_over() -> None:
    draw = random.Random(1)
    scores = [draw.gauss(1, 0.05) for _ in range(2_995)]
    bound = bound_of(_requests(scores), wanted=0.99, confidence=0.95)
    assert bound.rank == 21
    assert bound.score == pytest.approx(sorted(scores)[-21], rel=1e-6)


def test_too_few_name_a_lower_percentile_by_its_name() -> None:
    draw = random.Random(2)
    bound = bound_of(_requests([draw.gauss(1, 0.05) for _ in range(150)]), wanted=0.999, confidence=0.95)
    assert bound.percentile == 0.98


def test_samples_that_follow_one_another_count_less() -> None:
    draw, value, scores = random.Random(3), 0.0, []
    for _ in range(3_000):
        value = 0.8 * value + draw.gauss(0, 0.6)
        scores.append(1 + 0.05 * value)
    bound = bound_of(_requests(scores), wanted=0.999, confidence=0.95)
    assert bound.lag > 5
    assert bound.effective_n == -(-3_000 // bound.lag)
    assert bound.percentile in (0.98, 0.99)
    assert still_needed(_requests(scores), independent=2_995) == 2_995 * bound.lag


def test_enough_is_enough() -> None:
    draw = random.Random(4)
    requests = _requests([draw.gauss(1, 0.05) for _ in range(300)])
    assert still_needed(requests, independent=299) == 300


def test_a_latency_that_only_drifts_gives_no_bound() -> None:
    with pytest.raises(BusyError, match="300 requests count as only"):
        bound_of(_requests([1 + i / 300 for i in range(300)]), wanted=0.99, confidence=0.95)


def test_a_provisional_bound_multiplies_by_one() -> None:
    assert provisional_bound().score == 1.0
