"""What the next answer is likely to be, as tokens: at each choice, what was chosen there the last time.

A robot mostly goes on doing what it does, and where it does not, it was mostly told so: by other words or another flag,
which it has mostly met before. So remembered is what was chosen in each *situation*, whatever the caller takes for one
(the words and flags of an observation), and where a situation never met a choice, what was chosen there the last time
in any. These tokens are appended to the observation, and one pass says at each choice whether the model would choose
the same again; where it would not, what was run behind that choice is forgotten. Remembered is a token per choice, not
per answer: behind a choice that came out another way the rest of the answer is often as it was.

How likely a token is to come again is learned: the share of the times it did when its choice was met, counted as if it
had come once and not come once before (Laplace's rule of succession), and from the sixteenth time on with the newest
weighing a sixteenth. A choice has two such shares, over all situations: of those that had met it before, and of those
that were new to it. Pure and deterministic; knows no prices (``edgeguard.budget``) and no model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from edgeguard.answer.automaton import Automaton

POLICY = "the last token of each choice under the same words and flags, as far as it pays"
"""In words, for whoever has to know that it is another one now: a calibration holds for one policy."""

SITUATIONS = 256
"""So many are remembered, the latest: words are free text, and there is no end of them."""

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
    """What was chosen at each choice of ``automaton`` the last time, by situation; ``None`` is one too."""

    def __init__(self, *, automaton: Automaton) -> None:
        self._automaton = automaton
        self._chosen: OrderedDict[Hashable, dict[int, int]] = OrderedDict()  # by situation, the latest last
        self._latest: dict[int, int] = {}  # in any
        self._shares: dict[tuple[int, bool], _Share] = {}  # by choice, and whether its situation had met it

    def note(self, choices: Iterable[tuple[int, int]], *, situation: Hashable = None) -> None:
        """An answer: what was chosen, as (state, token)."""
        chosen = self._chosen.setdefault(situation, {})
        self._chosen.move_to_end(situation)
        if len(self._chosen) > SITUATIONS:
            self._chosen.popitem(last=False)
        for state, token in choices:
            if state in self._latest:
                guess = chosen.get(state, self._latest[state])
                self._shares.setdefault((state, state in chosen), _Share()).count(guess == token)
            chosen[state] = self._latest[state] = token

    def draft(self, state: int, *, situation: Hashable = None) -> Draft:
        """From ``state``, which has a choice before it."""
        automaton, tokens, reaches = self._automaton, list[int](), list[Reach]()
        chosen = self._chosen.get(situation, {})
        token: int | None = None
        while not automaton.finished(state):
            if reaches:
                if token is None:
                    break
                tokens.append(token)
            tokens += automaton.forced(state)
            choice = automaton.after_forced(state)
            token = chosen.get(choice, self._latest.get(choice))
            share = self._shares.get((choice, choice in chosen))
            again = UNKNOWN_SHARE if share is None else share.value
            reaches.append(Reach(at=len(tokens), state=choice, token=token, again=again))
            if token is not None:
                state = automaton.step(choice, token)
        return Draft(tokens=tuple(tokens), reaches=tuple(reaches))


@dataclass(slots=True)
class _Share:
    """How often it came again, of so many times that are ``counted``."""

    value: float = UNKNOWN_SHARE
    counted: int = 2

    def count(self, again: bool) -> None:
        self.counted = min(self.counted + 1, MOST_COUNTED)
        self.value += (again - self.value) / self.counted


def undrafted(automaton: Automaton, state: int) -> Draft:
    """The forced run to the next choice, without any guess."""
    reach = Reach(at=automaton.forced_length(state), state=automaton.after_forced(state), token=None, again=0.0)
    return Draft(tokens=automaton.forced(state), reaches=(reach,))
