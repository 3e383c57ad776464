"""What is remembered of the answers, and what a draft is made of."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.answer import Automaton, Choice, Grid, Memory, compile_answer
from edgeguard.answer.draft import MOST_COUNTED, UNKNOWN_SHARE, undrafted
from tests.answer_tokenizers import vocabulary
from tests.choices import choices_of

FIELDS = (
    Choice(name="turn", values=("left", "leftover", "stop", "höher")),
    Grid(name="speed", step=Decimal("0.5"), multiples=range(-2, 22)),
    Choice(name="b", values=(True, False)),
)
ANSWERS = st.fixed_dictionaries({
    "turn": st.sampled_from(FIELDS[0].values),
    "speed": st.integers(-2, 21).map(lambda halves: Decimal(halves) / 2),
    "b": st.booleans(),
})  # fmt: skip


@pytest.fixture(scope="module", params=["byte-level, one digit a token", "sentencepiece unigram"])
def automaton(request: pytest.FixtureRequest) -> Automaton:
    return compile_answer(FIELDS, vocabulary=vocabulary(request.param), context="say: ", end_tokens=[7])


def remembering(automaton: Automaton, *answers: dict[str, object]) -> Memory:
    memory = Memory(automaton=automaton)
    for answer in answers:
        memory.note(choices_of(automaton, automaton.encode(answer)))
    return memory


@settings(max_examples=60, deadline=None)
@given(before=st.lists(ANSWERS, max_size=3), last=ANSWERS)
def test_a_draft_is_the_last_answer_up_to_its_last_choice(
    automaton: Automaton, before: list[dict[str, object]], last: dict[str, object]
) -> None:
    draft = remembering(automaton, *before, last).draft(automaton.start)
    path, choices = automaton.encode(last), choices_of(automaton, automaton.encode(last))
    assert draft.tokens == path[: draft.reaches[-1].at]
    assert [(one.state, one.token) for one in draft.reaches] == choices
    assert all(path[one.at] == one.token for one in draft.reaches)
    state = automaton.start
    for token in path[: draft.reaches[-1].at + 1]:
        state = automaton.step(state, token)
    assert automaton.finished(state)


def test_without_a_memory_it_is_the_forced_run(automaton: Automaton) -> None:
    draft = Memory(automaton=automaton).draft(automaton.start)
    assert draft.tokens == undrafted(automaton, automaton.start).tokens == automaton.forced(automaton.start)
    assert [one.token for one in draft.reaches] == [None]


def test_it_ends_at_the_first_choice_that_was_never_met(automaton: Automaton) -> None:
    memory = Memory(automaton=automaton)
    answer = {"turn": "stop", "speed": Decimal("1.5"), "b": True}
    first, *_ = choices_of(automaton, automaton.encode(answer))
    memory.note([first])
    draft = memory.draft(automaton.start)
    assert [one.token for one in draft.reaches] == [first[1], None]
    assert draft.tokens == automaton.encode(answer)[: draft.reaches[-1].at]


def test_behind_a_choice_that_came_out_another_way_the_rest_is_still_known(automaton: Automaton) -> None:
    """The fields behind one that changed are remembered, because the same continuation is one state."""
    memory = remembering(automaton, {"turn": "stop", "speed": Decimal("1.5"), "b": True})
    now = automaton.encode({"turn": "höher", "speed": Decimal("1.5"), "b": True})
    state, length = automaton.start, 0
    for state_at, token in choices_of(automaton, now):
        state = automaton.step(state_at, token)
        length = now.index(token, length) + 1
        if token not in remembering(automaton).draft(state_at).tokens and state_at not in memory._chosen:
            continue
        if memory._chosen[state_at] != token:
            draft = memory.draft(state)
            if draft.reaches[0].token is not None:
                assert now[length : length + len(draft.tokens)] == draft.tokens
                return
    raise AssertionError("no choice behind the changed one was remembered")


def test_the_share_of_what_came_again_is_counted_and_then_runs(automaton: Automaton) -> None:
    left, stop = ({"turn": turn, "speed": Decimal(0), "b": True} for turn in ("left", "stop"))

    def again(*answers: dict[str, object]) -> float:
        return remembering(automaton, *answers).draft(automaton.start).reaches[0].again

    assert again() == again(left) == UNKNOWN_SHARE
    assert again(left, left) == pytest.approx(2 / 3)
    assert again(left, left, left) == pytest.approx(3 / 4)
    assert again(left, stop) == pytest.approx(1 / 3)
    steady = again(*[left] * 200)
    assert 1 - 1e-4 < steady < 1
    assert again(*[left] * 200, stop) == pytest.approx(steady * (1 - 1 / MOST_COUNTED))


def test_the_same_answers_in_the_same_order_make_the_same_draft(automaton: Automaton) -> None:
    answers = [{"turn": turn, "speed": Decimal(1), "b": turn != "stop"} for turn in ("left", "stop", "left")]
    one, other = (remembering(automaton, *answers).draft(automaton.start) for _ in range(2))
    assert one == other
