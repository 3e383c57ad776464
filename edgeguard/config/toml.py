"""A TOML file as its tables, numbers as exact decimals; what is no TOML is shown with its line and the likely way out.

Knows no key. Everything that cannot be read is one ``ConfigError`` that names the file.
"""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from edgeguard.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

_REMEDIES = (
    ("'='", 'a line is: key = value, or the head of a table: [name]'),
    ("after a statement", 'a key is one line: key = value. A number has no unit (20, not 20 ms) and a decimal point, a '
                          'text its "quotes"'),
    ("Invalid value", 'a text is written in "quotes", true and false in small letters; a [ or { that is opened is '
                      "closed, a { on the same line"),
    ("overwrite", "the key is there twice in its table: keep one"),
    ("twice", "the table is there twice: put its keys together, or write each as [[name]] where there may be several"),
    ("inline table", "what { opens is closed on the same line; a longer one is a table of its own: [name]"),
    ("key part", "what { opens is closed on the same line; a longer one is a table of its own: [name]"),
    ("'\\'", r"write \\ for a backslash, or the text in 'single quotes'"),
    ("Illegal character", 'a text ends with its " on the same line'),
    ("Unterminated", "a text ends with the quotes that it began with"),
)  # fmt: skip
"""What a parser's complaint contains, and what was most likely meant; the first that fits."""

_SHOWN = 48
"""Columns of a line around the place, so that the caret stays under it in a narrow terminal."""


def read_toml(path: Path, *, what: str) -> tuple[bytes, dict[str, Any]]:
    """The content of ``path`` and its tables. ``what`` it is to be, for whoever named another file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name {what}") from error
    if not content.strip():
        raise ConfigError(f"{path}: is empty; name {what}")
    return content, parse_toml(content, file=path)


def parse_toml(content: bytes, *, file: Path) -> dict[str, Any]:
    """The tables of ``content``, which came from ``file``; the byte order mark of some editors is left out."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        raise ConfigError(f"{file}: line {line}: is no text in UTF-8 (byte {byte:#04x}); save it as UTF-8") from error
    try:
        document: dict[str, Any] = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_complaint(str(error), text, file=file)) from error
    except RecursionError as error:
        raise ConfigError(f"{file}: is nested too deeply to be read") from error
    return document


def _complaint(said: str, text: str, *, file: Path) -> str:
    remedy = next((f"; {words}" for word, words in _REMEDIES if word in said), "")
    place = _PLACE.search(said)
    if place is None:
        return f"{file}: not valid TOML: {said}{remedy}"
    lines = text.replace("\r\n", "\n").split("\n")
    while place[1] is None and len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    row = int(place[1] or len(lines))
    line = lines[row - 1]
    column = int(place[2] or len(line) + 1)
    begin = max(0, min(column - _SHOWN // 2, len(line) + 1 - _SHOWN))
    shown = "".join(one if one.isprintable() else " " for one in line[begin : begin + _SHOWN])
    head = f"{file}: line {row}, column {column}: not valid TOML: {said[: place.start()]}{remedy}"
    return f"{head}\n    {shown.rstrip()}\n    {' ' * (column - 1 - begin)}^"
