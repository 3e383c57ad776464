"""One line of text, both ways: a format with places is written with values, and read back into the texts of its places.

Two tests stand for each other: what a format writes, it reads; and what it cannot have written, it does not read.
Fails with ``ValueError`` for a format that could not be read back.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"

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
        for literal, name, spec, conversion in parts:
            if not _LITERAL.fullmatch(literal):
                raise ValueError(f"{literal!r} is not plain ASCII on one line")
            if self._parts and not literal and name is not None:
                raise ValueError(f"{{{self._parts[-1][1]}}}{{{name}}}: put something between them to part them by")
            pattern += re.escape(literal)
            if name is not None:
                if name not in places or conversion:
                    raise ValueError(f"{{{name}}} is nothing that can be said there; known: {', '.join(places)}")
                pattern += f" *({places[name]}) *"
            self._parts.append((literal, name, spec or ""))
        self._pattern = re.compile(pattern)
        self.names = [name for _, name, _ in self._parts if name is not None]
        if len(set(self.names)) < len(self.names):
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
