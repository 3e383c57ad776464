"""Fitting on one part, scoring on the other, and the bound that is the dearest price times a score."""

from __future__ import annotations

import math
import random

import pytest

from edgeguard.bench.calibration.sample import Look, Sample
from edgeguard.bench.calibration.scoring import bounds_of, fit_cost, price_requests, provisional_bounds, still_needed
from edgeguard.budget import PassCost, PassTimes, RequestTimes
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import BusyError, WorkerError
from edgeguard.types import Answer, Finish, Pass, ThermalLevel

SWEEP = [PassTimes(k=k, p=100, elapsed_ns=((8 + k) * NS_PER_MS,)) for k in (2, 4, 8, 16, 32)]


def _sample(passes: list[tuple[int, int, float]], *, latency_ms: float, bound_ms: float | None = 60) -> Sample:
    answer = Answer(
        request_id=1,
        epoch=0,
        finish=Finish.COMPLETE,
        bound_ns=None if bound_ms is None else round(bound_ms * NS_PER_MS),
        passes=tuple(Pass(k=k, p=p, elapsed_ns=round(ms * NS_PER_MS)) for k, p, ms in passes),
    )
    return Sample.of(answer, at_ns=0, latency_ns=round(latency_ms * NS_PER_MS), look=Look(), soaked=False, worker=0)


def _requests(scores: list[float], *, price_ms: float = 100, dearest_ms: float = 120, **keys) -> list[RequestTimes]:
    return [
        RequestTimes(
            latency_ns=round(score * price_ms * NS_PER_MS),
            price_ns=round(price_ms * NS_PER_MS),
            dearest_ns=round(dearest_ms * NS_PER_MS),
            **keys,
        )
        for score in scores
    ]


def _scores(n: int, *, seed: int, mean: float = 1.0) -> list[float]:
    draw = random.Random(seed)
    return [draw.gauss(mean, 0.05) for _ in range(n)]


def test_the_constant_is_what_a_request_takes_beside_its_passes() -> None:
    samples = [_sample([(16, 100, 24), (2, 116, 10)], latency_ms=34 + beside) for beside in (2, 3, 50)]
    cost = fit_cost(SWEEP, samples)
    assert cost.constant_ns == 3 * NS_PER_MS
    assert cost.price_ns(16, 100) == 24 * NS_PER_MS


def test_a_request_is_priced_by_the_passes_it_made_and_by_its_dearest_answer() -> None:
    cost = PassCost.fit(SWEEP).with_constant(2 * NS_PER_MS)
    samples = [_sample([(16, 100, 99), (2, 116, 99)], latency_ms=50, bound_ms=72)]
    (one,) = price_requests(samples, lambda _: cost, levels=[ThermalLevel.HOT])
    assert (one.price_ns, one.dearest_ns) == (36 * NS_PER_MS, 72 * NS_PER_MS)
    assert one.score == pytest.approx(50 / 36)
    assert (one.first_tokens, one.ttft_ns, one.level) == (16, 99 * NS_PER_MS, ThermalLevel.HOT)


def test_a_worker_that_states_no_bound_cannot_be_scored() -> None:
    with pytest.raises(WorkerError, match="does not state the bound"):
        price_requests([_sample([(2, 100, 10)], latency_ms=12, bound_ms=None)], lambda _: PassCost.fit(SWEEP))


def test_the_bound_is_the_dearest_price_times_the_largest_score_when_there_are_just_enough() -> None:
    scores = [1.0 + 0.001 * i for i in random.Random(1).sample(range(299), 299)]
    (bound,) = bounds_of(_requests(scores), wanted=0.99, confidence=0.95)
    assert (bound.percentile, bound.rank, bound.n, bound.effective_n, bound.lag) == (0.99, 1, 299, 299, 1)
    assert bound.score == pytest.approx(1.298)
    assert bound.bound_ns == pytest.approx(1.298 * 120 * NS_PER_MS, rel=1e-6)


def test_of_many_the_largest_may_be_passed_over() -> None:
    scores = _scores(2_995, seed=1)
    (bound,) = bounds_of(_requests(scores), wanted=0.99, confidence=0.95)
    assert bound.rank == 21
    assert bound.score == pytest.approx(sorted(scores)[-21], rel=1e-6)
    assert bound.ljung_box_p is not None
    assert bound.gpd_shape == pytest.approx(-0.1, abs=0.3)


def test_too_few_name_a_lower_percentile_by_its_name() -> None:
    (bound,) = bounds_of(_requests(_scores(150, seed=2)), wanted=0.999, confidence=0.95)
    assert bound.percentile == 0.98


def test_every_level_rung_and_way_of_decoding_has_a_bound_of_its_own_if_it_has_requests_enough() -> None:
    requests = [
        *_requests(_scores(400, seed=1)),
        *_requests(_scores(400, seed=2, mean=1.5), level=ThermalLevel.HOT),
        *_requests(_scores(400, seed=3, mean=1.2), drafted=True),
        *_requests(_scores(160, seed=4, mean=2.0), rung="short"),
        *_requests(_scores(20, seed=5, mean=3.0), level=ThermalLevel.THROTTLED),
    ]
    random.Random(6).shuffle(requests)
    found = bounds_of(requests, wanted=0.99, confidence=0.95)
    cells = {(one.level.label, one.rung, one.drafted): one.percentile for one in found}
    assert cells == {
        ("nominal", "", False): 0.99,
        ("nominal", "", True): 0.99,
        ("nominal", "short", False): 0.98,
        ("hot", "", False): 0.99,
    }
    assert [one.n for one in found] == [400, 400, 160, 400]


def _dependent(n: int, *, rho: float = 0.95) -> list[float]:
    draw, value, scores = random.Random(3), 0.0, []
    for _ in range(n):
        value = rho * value + draw.gauss(0, math.sqrt(1 - rho**2))
        scores.append(1 + 0.05 * value)
    return scores


def test_samples_that_follow_one_another_count_less() -> None:
    (bound,) = bounds_of(_requests(_dependent(3_000)), wanted=0.999, confidence=0.95)
    assert bound.lag > 3
    assert bound.effective_n < 1_000
    assert bound.percentile in (0.98, 0.99)
    assert bound.ljung_box_p is not None
    assert bound.ljung_box_p < 1e-6


def test_what_is_still_needed_is_asked_for_every_cell_that_matters() -> None:
    wanted = {"wanted": 0.99, "confidence": 0.95}
    assert still_needed(_requests(_scores(300, seed=4)), **wanted) == 0
    halves = [*_requests(_scores(150, seed=1)), *_requests(_scores(150, seed=2), drafted=True)]
    assert still_needed(halves, **wanted) == 298
    rare = [*_requests(_scores(600, seed=1)), *_requests(_scores(4, seed=2), drafted=True)]
    assert still_needed(rare, **wanted) == 0  # the first request of a worker has no draft, or there are hardly any
    assert still_needed(_requests(_dependent(400)), **wanted) > 300


def test_a_latency_that_only_drifts_gives_no_bound() -> None:
    with pytest.raises(BusyError, match="300 requests count as only"):
        bounds_of(_requests([1 + i / 300 for i in range(300)]), wanted=0.99, confidence=0.95)


def test_provisional_bounds_multiply_by_one_with_a_draft_and_without() -> None:
    assert [(one.score, one.drafted) for one in provisional_bounds()] == [(1.0, False), (1.0, True)]
    assert [one.rung for one in provisional_bounds(["full", "brief"])] == ["full", "full", "brief", "brief"]
