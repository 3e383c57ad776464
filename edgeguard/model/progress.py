"""How a long piece of work tells how far it is, without knowing who draws it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called from the working thread; must return quickly and must not raise."""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """``done`` of ``total`` steps of ``phase`` are finished; the first call of a phase has ``done == 0``."""


def silent(phase: str, done: int, total: int) -> None:
    """For a caller who does not want to know."""
