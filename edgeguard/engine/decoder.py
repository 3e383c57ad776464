"""Decodes one answer in as few passes as its automaton and its draft allow, and nothing behind the last choice.

A pass carries what is new of the prompt (later: the token just chosen), the answer's forced run, and as much of a draft
as its guide says: what the answer is likely to be, from what was chosen the last time in the same situation
(``edgeguard.answer.Memory``), whatever that may be.
At each choice on the way the logits of the position before it say what the model wants there. As long as that is the
draft's token, the pass goes on to the next choice; where it is another, what was run behind is forgotten. So an answer
that has not changed takes one pass, and every answer is that of plain greedy decoding, bit by bit: no pass has fewer
tokens than give the same bits however they are split (``Provider.smallest_pass``).

The model is asked only where it has a choice, and only about the tokens that may follow: greedy, the likeliest of them;
of equals the one with the lowest id.

``decode_token_by_token`` is what everybody else does, for comparison: the prefix is cached, each token has a pass of
its own, and the mask lies on the whole vocabulary, so it needs the full head. Both give the same answer where passes
give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeguard.answer import Automaton, Draft, Memory
from edgeguard.answer.draft import undrafted
from edgeguard.engine.engine import Engine
from edgeguard.errors import EdgeguardError


class Guide(Protocol):
    """Asked before each pass."""

    def __call__(self, draft: Draft, *, state: int, pending: int, cached: int) -> int | None:
        """To which of the draft's reaches the pass goes (0: without any guess), or None to give the answer up.

        The answer is at ``state``, with ``pending`` tokens to run behind ``cached``.
        """


def undrafting(draft: Draft, *, state: int, pending: int, cached: int) -> int:  # noqa: ARG001 - the protocol's
    """A pass per choice."""
    return 0


def drafting(draft: Draft, *, state: int, pending: int, cached: int) -> int:  # noqa: ARG001 - the protocol's
    """The whole draft in each pass."""
    return len(draft.reaches) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One answer: its ``tokens`` up to the last choice, and how sure the model was of them.

    ``confidence`` is the product, over the choices, of the chosen token's probability among those that could follow.
    ``drafted`` tokens were run as a guess, and ``accepted`` of them were right.
    """

    tokens: tuple[int, ...]
    confidence: float
    drafted: int = 0
    accepted: int = 0


class LogitsError(EdgeguardError):
    """The model's logits are not numbers; its weights or the runtime are damaged."""


class HeadError(EdgeguardError):
    """The head has too few logits for what is asked of it."""


class Decoder:
    """Answers of one automaton by one engine. ``memory`` is what drafts are made of."""

    def __init__(self, *, engine: Engine, automaton: Automaton) -> None:
        self.memory = Memory(automaton=automaton)
        self._engine = engine
        self._automaton = automaton
        tokens = engine.head.tokens
        self._columns = None if tokens is None else {token: at for at, token in enumerate(tokens)}
        self._choices: dict[int, tuple[tuple[int, ...], list[int]]] = {}

    def draft(self, state: int, *, situation: Hashable = None) -> Draft:
        """What is likely to follow ``state``; no guess where the engine cannot verify one."""
        if self._engine.every_position:
            return self.memory.draft(state, situation=situation)
        return undrafted(self._automaton, state)

    def decode(self, prompt: Sequence[int], *, situation: Hashable = None, guide: Guide = undrafting) -> Decoded | None:
        """The answer to ``prompt``, or ``None`` when it was given up."""
        automaton, engine = self._automaton, self._engine
        pending, state, confidence = self._pending(prompt), automaton.start, 1.0
        answer, chosen = list[int](), list[tuple[int, int]]()
        drafted = accepted = 0
        while not automaton.finished(state):
            draft = self.draft(state, situation=situation)
            reach = guide(draft, state=state, pending=len(pending), cached=len(engine.cache))
            if reach is None:
                return None
            reaches = draft.reaches[: reach + 1]
            forced, end = reaches[0].at, reaches[-1].at
            engine.run([*pending, *draft.tokens[:end]])
            drafted += end - forced
            for one in reaches:
                token, probability = self.pick(one.state, engine.earlier(end - one.at))
                confidence *= probability
                chosen.append((one.state, token))
                if token != one.token:
                    break
            state = automaton.step(one.state, token)
            answer += [*draft.tokens[: one.at], token]
            accepted += one.at - forced
            engine.cache.rewind(len(engine.cache) - (end - one.at))
            pending = [token]
        self.memory.note(chosen, situation=situation)
        return Decoded(tokens=tuple(answer), confidence=confidence, drafted=drafted, accepted=accepted)

    def probabilities(self, prompt: Sequence[int], *, along: Sequence[int]) -> list[dict[int, float]]:
        """At each choice on the path ``along`` (tokens of an answer to ``prompt``), what each token that may follow is
        given by the model; they sum to 1. For comparing models on one path: ``along`` may be another model's answer.
        """
        automaton, path = self._automaton, list(along)
        pending, state, found = self._pending(prompt), automaton.start, list[dict[int, float]]()
        while not automaton.finished(state):
            forced = automaton.forced(state)
            logits = self._engine.run([*pending, *forced])
            state = automaton.after_forced(state)
            allowed, columns = self._choice(state)
            found.append(dict(zip(allowed, _softmax(logits[columns]).tolist(), strict=True)))
            token = path[len(forced)]
            path = path[len(forced) + 1 :]
            state = automaton.step(state, token)
            pending = [token]
        return found

    def decode_token_by_token(
        self, prompt: Sequence[int], *, guide: Guide = undrafting, same_bits: bool = False
    ) -> Decoded | None:
        """Like ``decode``, every token of the answer in a pass of its own, forced ones and those at the end too.

        ``same_bits`` makes no pass smaller than the provider's smallest, which costs time. Raises ``HeadError`` when
        the head is cut: that would be no longer what everybody else does.
        """
        if self._columns is not None:
            raise HeadError("token by token is a comparison with the whole vocabulary: start the worker --full-head")
        automaton, cache = self._automaton, self._engine.cache
        pending = self._pending(prompt)
        state, confidence, answer = automaton.start, 1.0, list[int]()
        while allowed := automaton.allowed(state):
            if not automaton.finished(state):  # behind the last choice there is nothing to plan
                draft = undrafted(automaton, state)
                if guide(draft, state=state, pending=len(pending), cached=len(cache)) is None:
                    return None
            logits = self._engine.run(pending, again=same_bits)
            masked = np.full_like(logits, -np.inf)
            masked[list(allowed)] = logits[list(allowed)]
            token = int(masked.argmax())
            confidence /= float(np.exp(masked - _sound(float(masked[token]))).sum())
            state = automaton.step(state, token)
            answer.append(token)
            pending = [token]
        return Decoded(tokens=tuple(answer), confidence=confidence)

    def pick(self, choice: int, logits: NDArray[Any]) -> tuple[int, float]:
        """The likeliest of the tokens that may follow a choice, and its probability among them."""
        allowed, columns = self._choice(choice)
        return _likeliest(allowed, [logits.item(column) for column in columns])

    def _pending(self, prompt: Sequence[int]) -> list[int]:
        """What of the prompt is not yet cached; at least its last token, whose logits are wanted."""
        cache = self._engine.cache
        cache.keep_common(prompt[:-1])
        return list(prompt[len(cache) :])

    def _choice(self, state: int) -> tuple[tuple[int, ...], list[int]]:
        """The tokens that may follow, and where their logits are; both ascending."""
        if state not in self._choices:
            allowed = self._automaton.allowed(state)
            columns = [token if self._columns is None else self._columns[token] for token in allowed]
            self._choices[state] = (allowed, columns)
        return self._choices[state]


def _likeliest(allowed: Sequence[int], logits: Sequence[float]) -> tuple[int, float]:
    """The token with the highest logit, of equals the first, and its probability among those ``allowed``.

    Without numpy: behind a pass its code is cold, and these are few.
    """
    highest = max(logits)
    total = _sound(sum([math.exp(one - highest) for one in logits]))  # NaN where one of them is, or none is finite
    return allowed[logits.index(highest)], 1.0 / total


def _sound(value: float) -> float:
    if not math.isfinite(value):
        raise LogitsError(f"a logit is {value}: the model's weights or the runtime are damaged")
    return value


def _softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares
