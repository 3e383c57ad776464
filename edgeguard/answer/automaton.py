"""The automaton of an answer: at every state the tokens that may follow, and what the passes still to come can be.

States are token positions, numbered so that every step leads to a higher number; the same continuation has one state,
so ten thousand values meet again behind their field. A state with one token to follow is inside a *forced run*: the
model is never asked there, the run rides in the next pass with the token that was chosen before it. Behind the last
choice nothing is asked at all.

What passes can follow a state is its *shape*: a set of pairs (tokens of the next pass, the shape after it). States that
differ only in what they say have the same shape, so a field of ten thousand values has a handful.

Holds tokens and texts only: no tokenizer, no clock, no model. Fails with ``TokenizerError`` at compile, and with
``ValueError`` when it is stepped where it cannot go, a defect of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from edgeguard.answer.field import Field
from edgeguard.answer.spelling import Stretch, Tokens, write_stretches
from edgeguard.answer.text import around_values, check_values
from edgeguard.answer.vocabulary import Vocabulary
from edgeguard.errors import TokenizerError

Shape: TypeAlias = frozenset[tuple[int, int]]

NO_CHOICE = 0
"""The shape of every state from which the rest of the answer is forced."""


def compile_answer(
    fields: Sequence[Field], *, vocabulary: Vocabulary, context: str, end_tokens: Sequence[int] = ()
) -> Automaton:
    """The automaton of all answers to ``fields``, as ``vocabulary`` writes them behind ``context``.

    ``context`` is the text right before the answer, back to the last control token; the prompt must be encoded up to
    there, and the answer's tokens follow it. ``end_tokens`` close every answer (``<|im_end|>``): the few-shot answers
    show them, and no pass is spent on them. Raises ``TokenizerError``.
    """
    stretches = write_stretches(fields, vocabulary=vocabulary, context=context)
    ends = tuple(end_tokens)
    for stretch in stretches:
        if not {*stretch.before, *chain(*stretch.segments.values()), *stretch.behind}.isdisjoint(ends):
            raise TokenizerError(f"an answer holds one of its own end tokens {ends}; take its text out of the schema")
    stretches[-1] = replace(stretches[-1], behind=stretches[-1].behind + ends)
    return Automaton(fields=fields, stretches=stretches)


class Automaton:
    """All answers as paths over tokens. ``start`` is the state before the answer's first token."""

    start = 0

    def __init__(self, *, fields: Sequence[Field], stretches: Sequence[Stretch]) -> None:
        self._fields = tuple(fields)
        self._stretches = tuple(stretches)
        self._spoken = [{segment: text for text, segment in one.segments.items()} for one in stretches]
        self._edges = _grow(stretches)
        count = len(self._edges)
        self._run = [0] * count  # tokens to the next choice
        self._behind = list(range(count))  # that choice's state, or the end
        self._shape = [NO_CHOICE] * count
        known: dict[Shape, int] = {}
        for state in reversed(range(count)):
            targets = self._edges[state].values()
            if len(targets) == 1:
                (target,) = targets
                self._run[state] = self._run[target] + 1
                self._behind[state] = self._behind[target]
                self._shape[state] = self._shape[target]
            elif targets:
                self._shape[state] = known.setdefault(self.ways(state), len(known) + 1)
        self.shapes: tuple[Shape, ...] = (frozenset(), *known)
        """By shape number: (tokens of the next pass, the shape after it); lower numbers come later in the answer."""
        self.alphabet = frozenset(token for edges in self._edges if len(edges) > 1 for token in edges)
        """Every token that the model may ever be asked about."""
        self.pass_sizes = frozenset(size for shape in self.shapes for size, after in shape if after)
        """The size of every pass but the first, which also carries the observation."""

    def allowed(self, state: int) -> Tokens:
        """The tokens that may follow, ascending: several at a choice, one in a forced run, none at the end."""
        return tuple(self._edges[state])

    def forced(self, state: int) -> Tokens:
        """The longest run of tokens that follows ``state`` without a choice; empty at a choice and at the end."""
        run = []
        while len(self._edges[state]) == 1:
            ((token, state),) = self._edges[state].items()
            run.append(token)
        return tuple(run)

    def after_forced(self, state: int) -> int:
        """The state behind ``forced(state)``: a choice, or the end."""
        return self._behind[state]

    def forced_length(self, state: int) -> int:
        """``len(forced(state))``, at no cost."""
        return self._run[state]

    def step(self, state: int, token: int) -> int:
        """The state behind ``token``; ``ValueError`` when it may not follow."""
        if token not in self._edges[state]:
            raise ValueError(f"token {token} may not follow state {state}")
        return self._edges[state][token]

    def finished(self, state: int) -> bool:
        """Whether the model has no choice left: what is still to come is ``forced(state)``, and needs no pass."""
        return self._shape[state] == NO_CHOICE

    def shape(self, state: int) -> int:
        """The number in ``shapes`` of what passes can follow the choice behind ``forced(state)``."""
        return self._shape[state]

    def ways(self, choice: int, *, but: int | None = None) -> Shape:
        """The passes that can follow a choice, as in ``shapes``; only those behind other tokens than ``but``."""
        targets = (target for token, target in self._edges[choice].items() if token != but)
        return frozenset(
            (1 + self._run[target] if self._shape[target] else 0, self._shape[target]) for target in targets
        )

    def encode(self, values: Mapping[str, object]) -> Tokens:
        """The whole path of an answer, end tokens included; ``AnswerError`` when it is none of these."""
        checked = check_values(values, fields=self._fields)
        path: Tokens = ()
        for field, stretch in zip(self._fields, self._stretches, strict=True):
            path += stretch.before + stretch.segments[field.text(checked[field.name])] + stretch.behind
        return path

    def text(self, tokens: Sequence[int]) -> str:
        """The answer that a path says, without the end tokens; ``ValueError`` when it is none.

        What is forced behind the last choice may be left out of ``tokens``.
        """
        state = self.start
        for token in tokens:
            state = self.step(state, token)
        if not self.finished(state):
            raise ValueError(f"the {len(tokens)} tokens leave choices open")
        rest = tuple(tokens) + self.forced(state)
        said = ""
        for stretch, spoken, (before, behind) in zip(
            self._stretches, self._spoken, around_values(self._fields), strict=True
        ):
            rest = rest[len(stretch.before) :]
            length = next(length for length in range(len(rest) + 1) if rest[:length] in spoken)
            said += before + spoken[rest[:length]] + behind
            rest = rest[length + len(stretch.behind) :]
        return said


def _grow(stretches: Sequence[Stretch]) -> list[dict[int, int]]:
    """The tokens that may follow each state, ascending, and where they lead: a chain, a trie, a chain, ..."""
    edges: list[dict[int, int]] = [{}]

    def state_behind(state: int, token: int) -> int:
        if token not in edges[state]:
            edges[state][token] = len(edges)
            edges.append({})
        return edges[state][token]

    for stretch in stretches:
        for token in stretch.before:
            state_behind(len(edges) - 1, token)
        root = len(edges) - 1
        last_steps = []
        for segment in sorted(stretch.segments.values()):
            state = root
            for token in segment[:-1]:
                state = state_behind(state, token)
            if segment:  # empty where the field has one value: its tokens are among the fixed ones
                edges[state][segment[-1]] = root  # keeps its place in the order until the state behind has a number
                last_steps.append((state, segment[-1]))
        if last_steps:
            for state, token in last_steps:
                edges[state][token] = len(edges)
            edges.append({})
        for token in stretch.behind:
            state_behind(len(edges) - 1, token)
    return edges
