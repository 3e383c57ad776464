"""The terminal as every command prints tables to it: coloured only where it is said, and a reader that leaves early is
an error of the pipe, as it is for ``print``. Importing it imports rich.
"""

from __future__ import annotations

from typing import NoReturn

import rich.console


class Console(rich.console.Console):
    """On stdout, or on stderr where stdout is for machines."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False)

    def on_broken_pipe(self) -> NoReturn:
        """rich would end the process here, with exit code 1."""
        raise BrokenPipeError
