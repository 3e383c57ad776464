"""Admission by the bound of the dearest path, giving up by the median of the cheapest."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.answer import Automaton, PathPrices, compile_answer, read_schema
from edgeguard.budget import PassCost, Planner
from edgeguard.types import ThermalLevel

COST = PassCost(
    sizes=(2, 4, 8, 16, 32), prices_ns=(11.5e6, 16e6, 28e6, 50e6, 93e6), p_reference=149, per_cached_ns=4_000.0,
    constant_ns=2_000_000,
)  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {
        "move": {"enum": ["stop", "forward", "go back", "turn"]},
        "speed": {"type": "integer", "minimum": 0, "maximum": 40},
        "lamp": {"type": "boolean"},
    },
    "required": ["move", "speed", "lamp"],
}


class Letters:
    """A tokenizer whose tokens are letters."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(map(ord, text)) for text in texts]

    def decode_batch(self, paths: Sequence[Sequence[int]]) -> list[str]:
        return ["".join(map(chr, path)) for path in paths]


@pytest.fixture(scope="module")
def automaton() -> Automaton:
    return compile_answer(read_schema(SCHEMA), vocabulary=Letters(), context="")


def _planner(automaton: Automaton, *, score: float = 1.4) -> Planner:
    scores = {ThermalLevel.NOMINAL: score, ThermalLevel.HOT: 2 * score}
    paths = PathPrices(automaton=automaton, price=COST.price_ns)
    return Planner(cost=COST, scores=scores, paths=paths, start=automaton.start)


def _passes(automaton: Automaton, values: dict[str, object], *, pending: int, cached: int) -> list[tuple[int, int]]:
    """The passes that this answer takes: one per choice, each with the forced run behind the token before."""
    passes, state, path = [], automaton.start, list(automaton.encode(values))
    while not automaton.finished(state):
        k = pending + automaton.forced_length(state)
        passes.append((k, cached))
        cached += k
        path = path[automaton.forced_length(state) :]
        state = automaton.step(automaton.after_forced(state), path.pop(0))
        pending = 1
    return passes


def _all_answers() -> list[dict[str, object]]:
    moves = ["stop", "forward", "go back", "turn"]
    combined = itertools.product(moves, range(41), (False, True))
    return [{"move": move, "speed": speed, "lamp": lamp} for move, speed, lamp in combined]


@pytest.mark.parametrize(("tokens", "cached"), [(1, 0), (26, 149), (60, 400)])
def test_the_bound_is_the_dearest_of_all_answers_times_the_score(
    automaton: Automaton, tokens: int, cached: int
) -> None:
    dearest_ns = max(
        COST.passes_ns(_passes(automaton, answer, pending=tokens, cached=cached)) for answer in _all_answers()
    )
    bound_ns = _planner(automaton).bound_ns(request_tokens=tokens, cached=cached)
    assert bound_ns == pytest.approx(1.4 * dearest_ns, abs=10)
    assert bound_ns == math.ceil(bound_ns)


def test_each_level_has_its_own_bound_and_one_that_was_never_measured_has_none(automaton: Automaton) -> None:
    planner = _planner(automaton)
    nominal, hot, throttled = (planner.bound_ns(request_tokens=26, cached=149, level=level) for level in ThermalLevel)
    assert nominal is not None
    assert hot == pytest.approx(2 * nominal, abs=2)
    assert throttled is None


@given(tokens=st.integers(1, 200), more=st.integers(0, 50), cached=st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_a_longer_request_or_a_longer_cache_never_has_a_smaller_bound(
    automaton: Automaton, tokens: int, more: int, cached: int
) -> None:
    planner = _planner(automaton)
    bound_ns = planner.bound_ns(request_tokens=tokens, cached=cached)
    assert planner.bound_ns(request_tokens=tokens + more, cached=cached) >= bound_ns
    assert planner.bound_ns(request_tokens=tokens, cached=cached + more) >= bound_ns


def test_a_request_is_given_up_when_even_the_shortest_way_takes_longer_than_is_left(automaton: Automaton) -> None:
    planner = _planner(automaton)
    cheapest_ns = min(COST.passes_ns(_passes(automaton, one, pending=26, cached=149)) for one in _all_answers())
    cheapest_ns -= COST.constant_ns  # spent before the first pass, or to come after the last
    rest = {"state": automaton.start, "pending": 26, "cached": 149}
    assert not planner.more_likely_late(left_ns=cheapest_ns + 10, **rest)
    assert planner.more_likely_late(left_ns=cheapest_ns - 10, **rest)


def test_giving_up_waits_for_the_median_where_admission_asks_for_the_bound(automaton: Automaton) -> None:
    planner = _planner(automaton, score=3.0)
    left_ns = planner.bound_ns(request_tokens=26, cached=149) // 2
    assert not planner.more_likely_late(state=automaton.start, pending=26, cached=149, left_ns=left_ns)


def test_both_questions_are_answered_within_twenty_microseconds(automaton: Automaton) -> None:
    planner = _planner(automaton)
    planner.prepare(request_tokens=range(1, 60), cached=149)
    planner.more_likely_late(state=automaton.start, pending=26, cached=149, left_ns=0)

    def best_us(question) -> float:
        """Of many short runs, so that nobody else's work is timed."""
        runs = []
        for _ in range(50):
            began = time.perf_counter()
            for _ in range(20):
                question()
            runs.append((time.perf_counter() - began) / 20 * 1e6)
        return min(runs)

    assert best_us(lambda: planner.bound_ns(request_tokens=26, cached=149)) < 20
    assert best_us(lambda: planner.more_likely_late(state=0, pending=26, cached=149, left_ns=0)) < 20
