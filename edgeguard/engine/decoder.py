"""Decodes one answer in as few passes as its automaton allows: a pass per choice, and nothing behind the last.

The first pass carries what is new of the prompt and the answer's first forced run; each later one the token just
chosen and the forced run behind it. The model is asked only where it has a choice, and only about the tokens that may
follow: greedy, the likeliest of them; of equals the one with the lowest id.

``token_by_token`` is what everybody else does, for comparison: the prefix is cached, each token has a pass of its own,
and the mask lies on the whole vocabulary, so it needs the full head. Both give the same answer where passes give the
same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeguard.answer import Automaton
from edgeguard.engine.engine import Engine
from edgeguard.errors import EdgeguardError


class GiveUp(Protocol):
    """Asked before each pass."""

    def __call__(self, *, state: int, pending: int, cached: int) -> bool:
        """Whether it is not worth going on from ``state`` with ``pending`` tokens to run behind ``cached``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One answer: its ``tokens`` up to the last choice, and how sure the model was of them.

    ``confidence`` is the product, over the choices, of the chosen token's probability among those that could follow.
    """

    tokens: tuple[int, ...]
    confidence: float


class LogitsError(EdgeguardError):
    """The model's logits are not numbers; its weights or the runtime are damaged."""


class HeadError(EdgeguardError):
    """The head has too few logits for what is asked of it."""


def never(*, state: int, pending: int, cached: int) -> bool:  # noqa: ARG001 - the signature is the protocol's
    """Go on to the end."""
    return False


class Decoder:
    """Answers of one automaton by one engine."""

    def __init__(self, *, engine: Engine, automaton: Automaton) -> None:
        self._engine = engine
        self._automaton = automaton
        tokens = engine.head.tokens
        self._columns = None if tokens is None else {token: at for at, token in enumerate(tokens)}
        self._choices: dict[int, tuple[tuple[int, ...], NDArray[np.intp]]] = {}

    def decode(self, prompt: Sequence[int], *, give_up: GiveUp = never) -> Decoded | None:
        """The answer to ``prompt``, or ``None`` when it was given up."""
        automaton, cache = self._automaton, self._engine.cache
        pending = self._pending(prompt)
        state, confidence, answer = automaton.start, 1.0, list[int]()
        while not automaton.finished(state):
            if give_up(state=state, pending=len(pending), cached=len(cache)):
                return None
            forced = automaton.forced(state)
            logits = self._engine.run([*pending, *forced])
            state = automaton.after_forced(state)
            allowed, columns = self._choice(state)
            token, probability = _likeliest(allowed, logits[columns])
            confidence *= probability
            state = automaton.step(state, token)
            answer += [*forced, token]
            pending = [token]
        return Decoded(tokens=tuple(answer), confidence=confidence)

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
        self, prompt: Sequence[int], *, give_up: GiveUp = never, same_bits: bool = False
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
            if give_up(state=state, pending=len(pending), cached=len(cache)):
                return None
            logits = self._engine.run(pending, again=same_bits)
            masked = np.full_like(logits, -np.inf)
            masked[list(allowed)] = logits[list(allowed)]
            token, probability = _likeliest(range(len(masked)), masked)
            confidence *= probability
            state = automaton.step(state, token)
            answer.append(token)
            pending = [token]
        return Decoded(tokens=tuple(answer), confidence=confidence)

    def _pending(self, prompt: Sequence[int]) -> list[int]:
        """What of the prompt is not yet cached; at least its last token, whose logits are wanted."""
        cache = self._engine.cache
        cache.keep_common(prompt[:-1])
        return list(prompt[len(cache) :])

    def _choice(self, state: int) -> tuple[tuple[int, ...], NDArray[np.intp]]:
        """The tokens that may follow, and where their logits are; both ascending."""
        if state not in self._choices:
            allowed = self._automaton.allowed(state)
            columns = allowed if self._columns is None else [self._columns[token] for token in allowed]
            self._choices[state] = (allowed, np.array(columns, dtype=np.intp))
        return self._choices[state]


def _likeliest(allowed: Sequence[int], logits: NDArray[Any]) -> tuple[int, float]:
    """The token with the highest logit, of equals the first, and its probability among those ``allowed``."""
    best = int(logits.argmax())  # the first NaN, if there is one
    highest = float(logits[best])
    if not math.isfinite(highest):
        raise LogitsError(f"a logit is {highest}: the model's weights or the runtime are damaged")
    return allowed[best], 1.0 / float(np.exp(logits - highest).sum())


def _softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares
