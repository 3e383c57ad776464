"""The terminal as every command prints to it: coloured only where it is said, text with [brackets] as it is, and a
reader that leaves early is an error of the pipe, as it is for ``print``. Importing it imports rich.
"""

from __future__ import annotations

from typing import NoReturn

import rich.console
from rich.text import Text


class Console(rich.console.Console):
    """On stdout, or on stderr where stdout is for machines."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False)

    def on_broken_pipe(self) -> NoReturn:
        """rich would end the process here, with exit code 1."""
        raise BrokenPipeError

    def print_headed(self, head: str, rest: str, *, style: str) -> None:
        """One word that says it all, in its style, and the sentence behind it."""
        self.print(Text.assemble((head, style), "  ", rest))
