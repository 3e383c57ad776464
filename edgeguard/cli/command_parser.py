"""The parser of every command: help whose paragraphs fit the terminal, and whose examples stay as they are written.

Knows nothing of what the commands do.
"""

from __future__ import annotations

import argparse
import difflib
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Any

WIDEST = 118
"""Columns of a paragraph: longer lines are hard to read."""


class HelpFormatter(argparse.HelpFormatter):
    """Lines that begin with a space are examples and tables; the lines between them are one paragraph."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts: list[str] = []
        for kept, some in groupby(text.splitlines(), key=lambda line: not line or line[0].isspace()):
            lines = list(some)
            parts += lines if kept else [textwrap.fill(" ".join(lines), min(width, WIDEST))]
        return textwrap.indent("\n".join(parts), indent)


class CommandParser(argparse.ArgumentParser):
    """Its commands are parsers of this kind too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, **options)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse does, but a command with a slip in it is answered with the nearest, not with all of them."""
        names: Sequence[str] = list(action.choices or ())
        near = difflib.get_close_matches(str(value), names, n=1)
        if action.choices is not None and value not in action.choices and near:
            raise argparse.ArgumentError(action, f"there is no {value!r}: did you mean {near[0]!r}?")
        super()._check_value(action, value)
