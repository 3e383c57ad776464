"""The parser of every command: help whose paragraphs fit the terminal, and whose examples stay as they are written.

Knows nothing of what the commands do.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NoReturn

from edgeguard.cli.wrapped import wrapped
from edgeguard.errors import ConfigError

WIDEST = 118
"""Columns of a paragraph: longer lines are hard to read."""

_WORDS = re.compile(r"(?<=\S) {2,}(\S(?:(?! {2}).)*)$")
_ROOM, _BELOW = 24, " " * 6
"""Words with less room than that beside their example are put below it."""


class HelpFormatter(argparse.HelpFormatter):
    """Lines that begin with a space are examples and tables; the lines between them are one paragraph."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        parts: list[str] = []
        for kept, some in groupby(text.splitlines(), key=lambda line: not line or line[0].isspace()):
            lines = list(some)
            width = min(width, WIDEST)
            parts += [_row(line, width) for line in lines] if kept else [textwrap.fill(" ".join(lines), width)]
        return textwrap.indent("\n".join(parts), indent)


def _row(line: str, width: int) -> str:
    """An example and what it does, two spaces or more apart: only the words are broken, and they keep their column.

    An example without words stays one line, so that it can be copied.
    """
    indent = len(line) - len(line.lstrip())
    if indent > len(_BELOW):  # words alone: they go on in their column
        return textwrap.fill(line.strip(), width, initial_indent=" " * indent, subsequent_indent=" " * indent)
    found = _WORDS.search(line)
    if len(line) <= width or found is None:
        return line
    example, words, column = line[: found.start()], found[1], found.start(1)
    if width - column < _ROOM:
        return "\n".join([example, *textwrap.wrap(words, width, initial_indent=_BELOW, subsequent_indent=_BELOW)])
    return line[:column] + f"\n{' ' * column}".join(textwrap.wrap(words, width - column))


class CommandParser(argparse.ArgumentParser):
    """Its commands are parsers of this kind too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """As argparse does, in lines that fit the terminal."""
        self.print_usage(sys.stderr)
        self.exit(ConfigError.exit_code, wrapped(f"{self.prog}: error: {message}", stream=sys.stderr) + "\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """As argparse does, but what cannot be written of a --help is found here, not when the process ends."""
        sys.stdout.flush()
        super().exit(status, message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse does, but a command with a slip in it is answered with the nearest, not with all of them."""
        names: Sequence[str] = list(action.choices or ())
        near = difflib.get_close_matches(str(value), names, n=1)
        if action.choices is not None and value not in action.choices and near:
            raise argparse.ArgumentError(action, f"there is no {value!r}: did you mean {near[0]!r}?")
        if action.dest == argparse.SUPPRESS and value not in names:
            raise argparse.ArgumentError(action, f"there is no {value!r}: {self.prog} --help lists what there is")
        super()._check_value(action, value)
