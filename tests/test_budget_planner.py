"""Admission by the bound of the dearest path, drafts as far as they pay and fit, giving up by the median."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.answer import Automaton, Memory, PathPrices, compile_answer, read_schema
from edgeguard.answer.draft import undrafted
from edgeguard.budget import PassCost, Plan, Planner
from edgeguard.types import ThermalLevel
from tests.choices import choices_of

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
AMPLE_NS = 10**12

Answer = dict[str, object]
Passes = list[tuple[int, int]]
ALL_ANSWERS: list[Answer] = [
    {"move": move, "speed": speed, "lamp": lamp}
    for move, speed, lamp in itertools.product(["stop", "forward", "go back", "turn"], range(41), (False, True))
]
ANSWERS = st.sampled_from(ALL_ANSWERS)


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
    levels = {ThermalLevel.NOMINAL: score, ThermalLevel.HOT: 2 * score}
    scores = {(level, drafted): one for level, one in levels.items() for drafted in (False, True)}
    return Planner(cost=COST, scores=scores, paths=PathPrices(automaton=automaton, price=COST.price_ns))


def _plan(planner: Planner, automaton: Automaton, *, tokens: int, cached: int, level: int = 0) -> Plan:
    """Without a draft."""
    reaches = undrafted(automaton, automaton.start).reaches
    return planner.plan(reaches, pending=tokens, cached=cached, left_ns=AMPLE_NS, level=ThermalLevel(level))


def _bound_ns(planner: Planner, automaton: Automaton, *, tokens: int, cached: int) -> int:
    bound_ns = _plan(planner, automaton, tokens=tokens, cached=cached).bound_ns
    assert bound_ns is not None
    return bound_ns


def _memory(automaton: Automaton, *answers: Answer) -> Memory:
    memory = Memory(automaton=automaton)
    for answer in answers:
        memory.note(choices_of(automaton, automaton.encode(answer)))
    return memory


def _passes(
    automaton: Automaton,
    answer: Answer,
    *,
    pending: int,
    cached: int,
    memory: Memory | None = None,
    reach: Callable[[Passes, int, int, Sequence[object]], int] = lambda *_: 0,
) -> Passes:
    """The passes that a decoder makes on the way to this answer; ``reach`` is asked before each how far it drafts."""
    passes, state, path = Passes(), automaton.start, list(automaton.encode(answer))
    memory = memory or Memory(automaton=automaton)
    while not automaton.finished(state):
        draft = memory.draft(state)
        reaches = draft.reaches[: 1 + reach(passes, pending, cached, draft.reaches)]
        passes.append((pending + reaches[-1].at, cached))
        for one in reaches:
            if path[one.at] != one.token:
                break
        cached += pending + one.at
        state = automaton.step(one.state, path[one.at])
        path = path[one.at + 1 :]
        pending = 1
    return passes


@pytest.mark.parametrize(("tokens", "cached"), [(1, 0), (26, 149), (60, 400)])
def test_the_bound_is_the_dearest_of_all_answers_times_the_score(
    automaton: Automaton, tokens: int, cached: int
) -> None:
    dearest_ns = max(
        COST.passes_ns(_passes(automaton, answer, pending=tokens, cached=cached)) for answer in ALL_ANSWERS
    )
    bound_ns = _bound_ns(_planner(automaton), automaton, tokens=tokens, cached=cached)
    assert bound_ns == pytest.approx(1.4 * dearest_ns, abs=10)
    assert bound_ns == math.ceil(bound_ns)


def test_each_level_has_its_own_bound_and_one_that_was_never_measured_has_none(automaton: Automaton) -> None:
    planner = _planner(automaton)
    plans = [_plan(planner, automaton, tokens=26, cached=149, level=level) for level in ThermalLevel]
    nominal, hot, throttled = (plan.bound_ns for plan in plans)
    assert nominal is not None
    assert hot == pytest.approx(2 * nominal, abs=2)
    assert throttled is None
    assert not plans[2].fits(AMPLE_NS)


@given(tokens=st.integers(1, 200), more=st.integers(0, 50), cached=st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_a_longer_request_or_a_longer_cache_never_has_a_smaller_bound(
    automaton: Automaton, tokens: int, more: int, cached: int
) -> None:
    planner = _planner(automaton)
    bound_ns = _bound_ns(planner, automaton, tokens=tokens, cached=cached)
    assert _bound_ns(planner, automaton, tokens=tokens + more, cached=cached) >= bound_ns
    assert _bound_ns(planner, automaton, tokens=tokens, cached=cached + more) >= bound_ns


# ------------------------------------------------------------------------------------------------------------- drafts


@given(last=ANSWERS, reach=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_the_worst_of_a_draft_is_the_dearest_of_all_answers_that_can_follow_it(
    automaton: Automaton, last: Answer, reach: int
) -> None:
    memory = _memory(automaton, last)
    reaches = memory.draft(automaton.start).reaches
    reach = min(reach, len(reaches) - 1)

    def first_only(passes: Passes, *_: object) -> int:
        return 0 if passes else reach

    dearest_ns = max(
        COST.passes_ns(_passes(automaton, one, pending=26, cached=149, memory=memory, reach=first_only))
        for one in ALL_ANSWERS
    )
    planner = _planner(automaton, score=1.0)
    worst_ns = planner._prices.worst(reaches, pending=26, cached=149)[reach]
    assert COST.constant_ns + worst_ns == pytest.approx(dearest_ns)


@given(answers=st.lists(ANSWERS, min_size=1, max_size=4), now=ANSWERS, spare=st.floats(1.0, 1.5))
@settings(max_examples=200, deadline=None)
def test_no_request_is_dearer_than_promised_wherever_its_drafts_are_wrong(
    automaton: Automaton, answers: list[Answer], now: Answer, spare: float
) -> None:
    """The planner decides about every pass, with more or less time to spare."""
    planner, memory = _planner(automaton), _memory(automaton, *answers)
    left_ns = round(spare * _bound_ns(planner, automaton, tokens=26, cached=149))
    draft = memory.draft(automaton.start)
    plan = planner.plan(draft.reaches, pending=26, cached=149, left_ns=left_ns, level=ThermalLevel.NOMINAL)
    assert plan.fits(left_ns)

    def reach(passes: Passes, pending: int, cached: int, reaches: Sequence[object]) -> int:
        if not passes:
            return plan.reach
        left = plan.promised_ns - planner.spent_ns(passes)
        return planner.reach(reaches, pending=pending, cached=cached, left_of_promise_ns=left)

    passes = _passes(automaton, now, pending=26, cached=149, memory=memory, reach=reach)
    assert planner.spent_ns(passes) <= plan.promised_ns + 1e-3
    if now == answers[-1] and plan.reach == len(draft.reaches) - 1:
        assert len(passes) == 1


def test_an_answer_that_does_not_change_is_drafted_whole_once_it_is_known_not_to(automaton: Automaton) -> None:
    planner, answer = _planner(automaton), ALL_ANSWERS[77]
    reached = []
    for times in (1, 40):
        draft = _memory(automaton, *[answer] * times).draft(automaton.start)
        plan = planner.plan(draft.reaches, pending=26, cached=149, left_ns=AMPLE_NS, level=ThermalLevel.NOMINAL)
        reached.append(plan.reach)
    assert reached[0] < reached[1] == len(draft.reaches) - 1


def test_a_draft_that_is_never_right_is_not_run(automaton: Automaton) -> None:
    turns = [
        {"move": move, "speed": speed, "lamp": False}
        for move, speed in zip(["stop", "turn"] * 20, range(40), strict=True)
    ]
    draft = _memory(automaton, *turns).draft(automaton.start)
    plan = _planner(automaton).plan(draft.reaches, pending=26, cached=149, left_ns=AMPLE_NS, level=ThermalLevel.NOMINAL)
    assert draft.reaches[0].again < 0.1
    assert plan.reach == 0


def test_a_draft_whose_worst_case_does_not_fit_is_cut_to_where_it_does(automaton: Automaton) -> None:
    """Ever less time: ever shorter drafts, then none, and at last no plan that fits."""
    planner = _planner(automaton)
    draft = _memory(automaton, *[ALL_ANSWERS[77]] * 40).draft(automaton.start)
    worst_ns = planner._prices.worst(draft.reaches, pending=26, cached=149)
    assert worst_ns == sorted(worst_ns)
    for reach, price_ns in enumerate(worst_ns):
        left_ns = math.ceil(1.4 * (COST.constant_ns + price_ns))
        plan = planner.plan(draft.reaches, pending=26, cached=149, left_ns=left_ns, level=ThermalLevel.NOMINAL)
        assert (plan.reach, plan.bound_ns) == (reach, left_ns)
    plan = planner.plan(draft.reaches, pending=26, cached=149, left_ns=1, level=ThermalLevel.NOMINAL)
    assert plan.reach == 0
    assert not plan.fits(1)


def test_on_average_is_what_the_shares_make_of_every_way_it_can_end(automaton: Automaton) -> None:
    prices = _planner(automaton)._prices
    reaches = _memory(automaton, ALL_ANSWERS[30], ALL_ANSWERS[31], ALL_ANSWERS[30]).draft(automaton.start).reaches
    price = COST.price_ns
    for reach, found in enumerate(prices.expected(reaches, pending=26, cached=149)):
        mean_ns = 0.0
        for ends in range(reach + 1):
            share = math.prod(one.again for one in reaches[:ends]) * (1 - reaches[ends].again if ends < reach else 1)
            behind = itertools.pairwise(reaches[ends:])
            rest_ns = sum(price(b.at - a.at, 175 + a.at) for a, b in behind)
            mean_ns += share * (price(26 + reaches[reach].at, 149) + rest_ns)
        assert found == pytest.approx(mean_ns)


# --------------------------------------------------------------------------------------------------------- giving up


def test_a_request_is_given_up_when_even_the_shortest_way_takes_longer_than_is_left(automaton: Automaton) -> None:
    planner = _planner(automaton)
    cheapest_ns = min(COST.passes_ns(_passes(automaton, one, pending=26, cached=149)) for one in ALL_ANSWERS)
    cheapest_ns -= COST.constant_ns  # spent before the first pass, or to come after the last
    reaches = undrafted(automaton, automaton.start).reaches
    rest = {"state": automaton.start, "pending": 26, "cached": 149}
    assert not planner.more_likely_late(reaches, 0, left_ns=cheapest_ns + 10, **rest)
    assert planner.more_likely_late(reaches, 0, left_ns=cheapest_ns - 10, **rest)


def test_a_draft_that_would_still_make_it_is_not_given_up(automaton: Automaton) -> None:
    planner = _planner(automaton)
    cheapest_ns = min(COST.passes_ns(_passes(automaton, one, pending=26, cached=149)) for one in ALL_ANSWERS)
    reaches = _memory(automaton, {"move": "stop", "speed": 0, "lamp": True}).draft(automaton.start).reaches
    rest = {"state": automaton.start, "pending": 26, "cached": 149}
    whole_ns = COST.price_ns(26 + reaches[-1].at, 149)
    assert whole_ns < cheapest_ns - COST.constant_ns
    assert not planner.more_likely_late(reaches, len(reaches) - 1, left_ns=whole_ns, **rest)
    assert planner.more_likely_late(reaches, len(reaches) - 1, left_ns=whole_ns - 10, **rest)
    assert planner.more_likely_late(reaches, 0, left_ns=whole_ns, **rest)


def test_giving_up_waits_for_the_median_where_admission_asks_for_the_bound(automaton: Automaton) -> None:
    planner = _planner(automaton, score=3.0)
    left_ns = _bound_ns(planner, automaton, tokens=26, cached=149) // 2
    reaches = undrafted(automaton, automaton.start).reaches
    assert not planner.more_likely_late(reaches, 0, state=automaton.start, pending=26, cached=149, left_ns=left_ns)


def test_its_questions_take_microseconds(automaton: Automaton) -> None:
    """With a draft of six choices, less than a thousandth of what the shortest pass takes."""
    planner = _planner(automaton)
    planner.prepare(state=automaton.start, request_tokens=range(1, 60), cached=149)
    reaches = _memory(automaton, *[ALL_ANSWERS[77]] * 40).draft(automaton.start).reaches

    def best_us(question: Callable[[], object]) -> float:
        """Of many short runs, so that nobody else's work is timed."""
        runs = []
        for _ in range(50):
            began = time.perf_counter()
            for _ in range(20):
                question()
            runs.append((time.perf_counter() - began) / 20 * 1e6)
        return min(runs)

    rest = {"pending": 26, "cached": 149}
    level = ThermalLevel.NOMINAL
    assert best_us(lambda: planner.plan(reaches, left_ns=AMPLE_NS, level=level, **rest)) < 300
    assert best_us(lambda: planner.reach(reaches, left_of_promise_ns=AMPLE_NS, **rest)) < 300
    assert best_us(lambda: planner.more_likely_late(reaches, 0, state=0, left_ns=0, **rest)) < 20
