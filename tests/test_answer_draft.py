"""What is remembered of the answers, and what a draft is made of."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.answer import Automaton, Choice, Grid, Memory, compile_answer
from edgeguard.answer.draft import MOST_COUNTED, SITUATIONS, UNKNOWN_SHARE, undrafted
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
    """All in one situation."""
    return told(automaton, *((None, answer) for answer in answers))


def told(automaton: Automaton, *answers: tuple[str | None, dict[str, object]]) -> Memory:
    """Each in a situation."""
    memory = Memory(automaton=automaton)
    for situation, answer in answers:
        memory.note(choices_of(automaton, automaton.encode(answer)), situation=situation)
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
        if state_at not in memory._latest:
            continue
        if memory._latest[state_at] != token:
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


# --------------------------------------------------------------------------------------------------------- situations


SITUATIONS_AND_ANSWERS = st.lists(st.tuples(st.sampled_from(["go left", "halt", "dance"]), ANSWERS), max_size=8)
LEFT, HALT = ({"turn": turn, "speed": Decimal(speed), "b": True} for turn, speed in (("left", 1), ("stop", 0)))


def first(automaton: Automaton, memory: Memory, situation: str) -> tuple[int | None, float]:
    """What its draft has at the first choice, and how sure it is of that."""
    one = memory.draft(automaton.start, situation=situation).reaches[0]
    return one.token, one.again


@settings(max_examples=100, deadline=None)
@given(before=SITUATIONS_AND_ANSWERS, now=st.tuples(st.sampled_from(["go left", "halt"]), ANSWERS), more=ANSWERS)
def test_what_a_situation_was_answered_is_its_draft_whatever_was_answered_since(
    automaton: Automaton, before: list[tuple[str, dict[str, object]]], now: tuple[str, dict[str, object]], more: object
) -> None:
    situation, answer = now
    memory = told(automaton, *before, now, ("sing", more), ("and dance", more))
    draft = memory.draft(automaton.start, situation=situation)
    path = automaton.encode(answer)
    assert draft.tokens == path[: draft.reaches[-1].at]
    assert [(one.state, one.token) for one in draft.reaches] == choices_of(automaton, path)


@settings(max_examples=100, deadline=None)
@given(answers=SITUATIONS_AND_ANSWERS)
def test_a_new_situation_has_what_was_chosen_last_in_any(
    automaton: Automaton, answers: list[tuple[str, dict[str, object]]]
) -> None:
    new, one = (
        memory.draft(automaton.start, situation="never said")
        for memory in (told(automaton, *answers), remembering(automaton, *(answer for _, answer in answers)))
    )
    assert new.tokens == one.tokens
    assert [(reach.state, reach.token) for reach in new.reaches] == [
        (reach.state, reach.token) for reach in one.reaches
    ]


def test_how_sure_a_draft_is_is_learned_apart_for_known_situations_and_new_ones(automaton: Automaton) -> None:
    """The words that are known are answered as before; those that are new, not as those before them."""
    turns = [("go left", LEFT), ("halt", HALT)] * 20
    memory = told(automaton, *turns)
    left, stop = (choices_of(automaton, automaton.encode(one))[0][1] for one in (LEFT, HALT))
    assert first(automaton, memory, "go left") == (left, pytest.approx(first(automaton, memory, "halt")[1]))
    assert first(automaton, memory, "halt")[0] == stop
    assert first(automaton, memory, "halt")[1] > 0.9
    assert first(automaton, memory, "dance") == (stop, pytest.approx(1 / 3)), "of one occasion, and that was another"
    assert first(automaton, told(automaton, ("go left", LEFT)), "halt") == (left, UNKNOWN_SHARE)


def test_of_all_that_is_ever_said_only_the_latest_is_remembered(automaton: Automaton) -> None:
    said = [(f"words {number}", LEFT) for number in range(SITUATIONS - 1)]
    left, stop = (choices_of(automaton, automaton.encode(one))[0][1] for one in (LEFT, HALT))
    kept = told(automaton, ("halt", HALT), *said)
    assert first(automaton, kept, "halt")[0] == stop
    kept.note(choices_of(automaton, automaton.encode(HALT)), situation="halt")  # said again: the latest now
    for number in range(2):
        kept.note(choices_of(automaton, automaton.encode(LEFT)), situation=f"new {number}")
    assert first(automaton, kept, "halt")[0] == stop
    assert len(kept._chosen) == SITUATIONS
    forgotten = told(automaton, ("halt", HALT), *said, ("one more", LEFT))
    assert first(automaton, forgotten, "halt")[0] == left
