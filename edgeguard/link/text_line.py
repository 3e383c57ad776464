"""One line of text, both ways: a format with places is written with values, and read back into the texts of its places.

Two tests stand for each other: what a format writes, it reads; and what it cannot have written, it does not read.
There is one way only to take a line apart, so that one which does not fit is known as quickly as one that does: the
guard reads them in its tick. Fails with ``ValueError`` for a format that could not be read back.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from itertools import pairwise

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
WORD = r"\S+"
"""Of no interest, so it may be there more than once. It ends before the character that comes behind its place."""

_LITERAL = re.compile(r"[\x20-\x7e\t]*")


class TextLine:
    """``places`` maps each name that may stand in braces to the pattern of what is written there."""

    def __init__(self, form: str, *, places: Mapping[str, str]) -> None:
        self._end = form[len(form.rstrip("\r\n")) :]
        self._parts: list[tuple[str, str | None, str]] = []
        pattern = ""
        try:
            parts = list(string.Formatter().parse(form.removesuffix(self._end)))
        except ValueError as error:
            raise ValueError(f"{form!r}: {error}") from error
        for (literal, name, spec, conversion), (behind, *_) in pairwise([*parts, ("", None, None, None)]):
            if not _LITERAL.fullmatch(literal):
                raise ValueError(f"{literal!r} is not plain ASCII on one line")
            if self._follows_a_place and not literal and name is not None:
                raise ValueError(f"{{{self._parts[-1][1]}}}{{{name}}}: put something between them to part them by")
            pattern += _padded(literal, behind=self._follows_a_place, before=name is not None)
            if name is not None:
                if name not in places or conversion:
                    raise ValueError(f"{{{name}}} is nothing that can be said there; known: {', '.join(places)}")
                pattern += f"({_until(behind[:1], places[name])})"
            self._parts.append((literal, name, spec or ""))
        self._pattern = re.compile(pattern + (" *" if self._follows_a_place else ""))
        self.names = [name for _, name, _ in self._parts if name is not None]
        once = [name for name in self.names if places[name] != WORD]
        if len(set(once)) < len(once):
            raise ValueError(f"{form!r}: a place is there twice")

    def write(self, values: Mapping[str, object]) -> str:
        """The line, its end included. ``ValueError`` when a number format does not suit its value."""
        said = [
            literal if name is None else literal + format(values[name], spec) for literal, name, spec in self._parts
        ]
        return "".join(said) + self._end

    def read(self, line: str) -> dict[str, str] | None:
        """The text of each place; ``None`` when the line, without its end, is not of this format."""
        match = self._pattern.fullmatch(line)
        return None if match is None else dict(zip(self.names, match.groups(), strict=True))

    @property
    def _follows_a_place(self) -> bool:
        return bool(self._parts) and self._parts[-1][1] is not None


def _padded(literal: str, *, behind: bool, before: bool) -> str:
    """The pattern of what stands ``behind`` a place or ``before`` one, where more spaces may be than it says."""
    core = literal.strip(" ")
    first, last = len(literal) - len(literal.lstrip(" ")), len(literal) - len(literal.rstrip(" "))
    if not core:
        return f" {{{first},}}" if behind or before else re.escape(literal)
    left = f" {{{first},}}" if behind else re.escape(" " * first)
    return left + re.escape(core) + (f" {{{last},}}" if before else re.escape(" " * last))


def _until(end: str, place: str) -> str:
    """The pattern of a place before the character ``end``."""
    return rf"[^\s{re.escape(end)}]+" if place == WORD and end.strip() else place
