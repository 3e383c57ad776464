"""The dearest and the cheapest rest of an answer are those that brute force finds, for any price."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.answer import Automaton, Choice, Grid, PathPrices, compile_answer
from tests.answer_tokenizers import vocabulary

FAMILIES = ["byte-level, one digit a token", "byte-level, merging across everything", "sentencepiece unigram"]

FIELDS = (
    Choice(name="turn", values=("left", "leftover", "stop", "höher")),
    Grid(name="speed", step=Decimal("0.5"), multiples=range(-2, 22)),
    Choice(name="b", values=(True, False)),
)


def automaton(family: str, fields: tuple[Choice | Grid, ...] = FIELDS) -> Automaton:
    return compile_answer(fields, vocabulary=vocabulary(family), context="say: ", end_tokens=[7])


def every_rest(machine: Automaton, state: int, pending: int, cached: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """The passes that a decoder makes, on every path from ``state``."""
    state, size = machine.after_forced(state), pending + len(machine.forced(state))
    if machine.finished(state):
        yield ()
        return
    for token in machine.allowed(state):
        for rest in every_rest(machine, machine.step(state, token), 1, cached + size):
            yield ((size, cached), *rest)


def choices(machine: Automaton) -> list[int]:
    """States behind a choice, from all over the answer."""
    found, todo = [machine.start], [machine.start]
    while todo:
        state = machine.after_forced(todo.pop())
        for token in machine.allowed(state):
            behind = machine.step(state, token)
            if behind not in found:
                found.append(behind)
                todo.append(behind)
    return found


PRICES: dict[str, Callable[[int, int], float]] = {
    "per token": lambda k, _: k,
    "per pass": lambda _k, _p: 1,
    "affine, two tokens at least": lambda k, p: 5_000_000 + 3_000_000 * max(k, 2) + 10_000 * p,
    "falling in p": lambda k, p: 100 * k / (1 + p),
    "by no rule": lambda k, p: (k * 7919 + p * 104_729) % 101,
}


@pytest.mark.parametrize("price", PRICES.values(), ids=list(PRICES))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_extremes_are_those_of_all_paths(family: str, price: Callable[[int, int], float]) -> None:
    machine = automaton(family)
    prices = PathPrices(automaton=machine, price=price)
    for state in choices(machine):
        pending, cached = (26, 149) if state == machine.start else (1, 190)
        totals = {passes: sum(price(k, p) for k, p in passes) for passes in every_rest(machine, state, pending, cached)}
        for found, extreme in [
            (prices.dearest(state=state, pending=pending, cached=cached), max),
            (prices.cheapest(state=state, pending=pending, cached=cached), min),
        ]:
            assert found.price == pytest.approx(extreme(totals.values()))
            assert totals[found.passes] == pytest.approx(found.price)


@pytest.mark.parametrize("price", PRICES.values(), ids=list(PRICES))
def test_behind_a_choice_they_are_those_of_the_tokens_that_may_be_chosen(price: Callable[[int, int], float]) -> None:
    machine = automaton(FAMILIES[0])
    prices = PathPrices(automaton=machine, price=price)
    for state in {machine.after_forced(state) for state in choices(machine)}:
        if machine.finished(state):
            continue
        rests = {
            token: [
                sum(price(k, p) for k, p in passes)
                for passes in every_rest(machine, machine.step(state, token), 1, 190)
            ]
            for token in machine.allowed(state)
        }
        everything = [total for totals in rests.values() for total in totals]
        assert prices.dearest_behind(choice=state, cached=190) == pytest.approx(max(everything))
        assert prices.cheapest_behind(choice=state, cached=190) == pytest.approx(min(everything))
        for but in rests:
            others = [total for token, totals in rests.items() if token != but for total in totals]
            found = prices.dearest_behind(choice=state, but=but, cached=190)
            assert found == pytest.approx(max(others))


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.text("ab1", max_size=4), min_size=1, max_size=6, unique=True),
    count=st.integers(1, 30),
    seed=st.integers(0, 10**6),
)
def test_they_are_for_any_fields_and_any_price(values: list[str], count: int, seed: int) -> None:
    fields = (Choice(name="a", values=tuple(values)), Grid(name="n", step=Decimal(1), multiples=range(count)))
    machine = automaton("byte-level, one digit a token", fields)

    def price(k: int, p: int) -> float:
        return (k * 7919 + p * 104_729 + seed) % 1009

    prices = PathPrices(automaton=machine, price=price)
    totals = [sum(price(k, p) for k, p in passes) for passes in every_rest(machine, machine.start, 5, 0)]
    assert prices.dearest(state=machine.start, pending=5, cached=0).price == max(totals)
    assert prices.cheapest(state=machine.start, pending=5, cached=0).price == min(totals)


def test_the_first_pass_carries_what_is_pending_and_the_first_forced_run() -> None:
    machine = automaton("byte-level")
    first = PathPrices(automaton=machine, price=PRICES["per token"]).dearest(
        state=machine.start, pending=26, cached=149
    )
    assert first.passes[0] == (26 + len(machine.forced(machine.start)), 149)
    for (k, p), (_, behind) in zip(first.passes, first.passes[1:], strict=False):
        assert behind == p + k


def test_nothing_is_run_behind_the_last_choice() -> None:
    machine = automaton("byte-level", (Choice(name="b", values=(True, False)),))
    prices = PathPrices(automaton=machine, price=PRICES["per pass"])
    assert len(prices.dearest(state=machine.start, pending=3, cached=0).passes) == 1
    state = machine.after_forced(machine.start)
    for token in machine.allowed(state):
        rest = prices.dearest(state=machine.step(state, token), pending=1, cached=9)
        assert (rest.passes, rest.price) == ((), 0)


def test_every_later_pass_has_one_of_the_pass_sizes() -> None:
    machine = automaton("byte-level, one digit a token")
    made = {k for passes in every_rest(machine, machine.start, 1, 0) for k, _ in passes[1:]}
    assert made == machine.pass_sizes


def test_a_thousand_choices_in_a_row_are_priced_without_recursion() -> None:
    longer = tuple("1" * length for length in range(1, 1101))
    machine = automaton("byte-level, one digit a token", (Choice(name="a", values=longer),))
    prices = PathPrices(automaton=machine, price=PRICES["per pass"])
    assert prices.dearest(state=machine.start, pending=1, cached=0).price == 1099
    assert prices.cheapest(state=machine.start, pending=1, cached=0).price == 1
