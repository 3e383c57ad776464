"""What the next answer is likely to be, as tokens: at each choice, what was chosen there the last time.

A robot mostly goes on doing what it does. So the tokens of the last answer are appended to the observation, and one
pass says at each choice whether the model would choose the same again; where it would not, what was run behind that
choice is forgotten. Remembered is a token per choice, not per answer: behind a choice that came out another way the
rest of the answer is often as it was.

How likely a token is to come again is learned: the share of the times it did when its choice was met, counted as if it
had come once and not come once before (Laplace's rule of succession), and from the sixteenth time on with the newest
weighing a sixteenth. Pure and deterministic; knows no prices (``edgeguard.budget``) and no model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgeguard.answer.automaton import Automaton

POLICY = "the last token of each choice, as far as it pays"
"""In words, for whoever has to know that it is another one now: a calibration holds for one policy."""

UNKNOWN_SHARE = 0.5
MOST_COUNTED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """A choice that a pass can decide: its ``state``, ``at`` so many tokens of the draft.

    ``token`` is what was chosen the last time (None: never met), ``again`` how often it is, as a share.
    """

    at: int
    state: int
    token: int | None
    again: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The likely ``tokens`` from some state of an answer to its last choice, or to the first that was never met.

    A pass that runs the tokens up to ``reaches[n].at`` decides the choices ``0..n`` (as many as the draft is right in,
    and one more). Up to the first there is no guess: that is the forced run.
    """

    tokens: tuple[int, ...]
    reaches: tuple[Reach, ...]


class Memory:
    """What was chosen at each choice of ``automaton`` the last time."""

    def __init__(self, *, automaton: Automaton) -> None:
        self._automaton = automaton
        self._chosen: dict[int, int] = {}
        self._again: dict[int, float] = {}
        self._met: dict[int, int] = {}

    def note(self, choices: Iterable[tuple[int, int]]) -> None:
        """An answer: what was chosen, as (state, token)."""
        for state, token in choices:
            if state in self._chosen:
                share, met = self._again.get(state, UNKNOWN_SHARE), self._met.get(state, 2) + 1
                self._again[state] = share + ((self._chosen[state] == token) - share) / met
                self._met[state] = min(met, MOST_COUNTED - 1)
            self._chosen[state] = token

    def draft(self, state: int) -> Draft:
        """From ``state``, which has a choice before it."""
        automaton, tokens, reaches = self._automaton, list[int](), list[Reach]()
        token: int | None = None
        while not automaton.finished(state):
            if reaches:
                if token is None:
                    break
                tokens.append(token)
            tokens += automaton.forced(state)
            choice = automaton.after_forced(state)
            token = self._chosen.get(choice)
            again = self._again.get(choice, UNKNOWN_SHARE)
            reaches.append(Reach(at=len(tokens), state=choice, token=token, again=again))
            if token is not None:
                state = automaton.step(choice, token)
        return Draft(tokens=tuple(tokens), reaches=tuple(reaches))


def undrafted(automaton: Automaton, state: int) -> Draft:
    """The forced run to the next choice, without any guess."""
    reach = Reach(at=automaton.forced_length(state), state=automaton.after_forced(state), token=None, again=0.0)
    return Draft(tokens=automaton.forced(state), reaches=(reach,))
