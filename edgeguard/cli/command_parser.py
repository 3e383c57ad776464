"""The parser of every command: help whose paragraphs fit the terminal, and whose examples stay as they are written.

Knows nothing of what the commands do.
"""

from __future__ import annotations

import argparse
import textwrap
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
