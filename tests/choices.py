"""The choices on the path of an answer, for the tests of drafts."""

from __future__ import annotations

from collections.abc import Sequence

from edgeguard.answer import Automaton


def choices_of(automaton: Automaton, tokens: Sequence[int]) -> list[tuple[int, int]]:
    """As (state, token): where more than one token was allowed."""
    state, found = automaton.start, []
    for token in tokens:
        if len(automaton.allowed(state)) > 1:
            found.append((state, token))
        state = automaton.step(state, token)
    return found
