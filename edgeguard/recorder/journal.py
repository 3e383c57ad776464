"""The guard's side of the black box: turns each step of the core into a document for whoever writes the file.

It numbers the steps and decides which of them hold the state before them. It touches no file and keeps nothing; a step
that could not be handed over is simply missing, and the next one holds the state again, so that replay can go on there.
"""

from __future__ import annotations

from edgeguard.guard.interface import Effects, Inputs
from edgeguard.guard.state import GuardState
from edgeguard.recorder.record import FlightStep, encode_step

BLOCK_STEPS = 64
"""A state every so many steps, about once a second: a block is what one damaged byte can cost."""


class FlightJournal:
    """One start of the guard, step by step. ``number`` is the last step's."""

    def __init__(self) -> None:
        self.number = 0
        self._left = 0  # of the block; 0: the next step begins one

    def note(self, before: GuardState, now_ns: int, inputs: Inputs, effects: Effects) -> tuple[bytes | None, bool]:
        """The step as a document, and whether it begins a block: the arguments of ``FlightWriter.append``."""
        begins_block = self._left == 0
        self._left = (BLOCK_STEPS if begins_block else self._left) - 1
        self.number += 1
        step = FlightStep(
            number=self.number,
            now_ns=now_ns,
            inputs=inputs,
            effects=effects,
            before=before if begins_block else None,
        )
        document = encode_step(step)
        if document is None:
            self.lost()
        return document, begins_block

    def lost(self) -> None:
        """The last step will not be in the file."""
        self._left = 0
