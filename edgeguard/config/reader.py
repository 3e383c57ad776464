"""Bounded reading of one TOML table: every key is checked where it is read, and what nobody read is an error.

A reader collects problems instead of raising, so that a file is told everything that is wrong with it at once. Each
problem names the file, the key, the value, the bound and, for an unknown key, the nearest one that exists. A key that
is wrong yields a harmless stand-in, so that reading can go on; nothing that was read may be used before
``Problems.raise_if_any``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from edgeguard.clock import ns_from_ms
from edgeguard.errors import ConfigError


class Problems:
    """What is wrong with one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[str] = []

    def add(self, key: str, problem: str) -> None:
        self.found.append(f"{self.file}: {key}: {problem}")

    def raise_if_any(self) -> None:
        if self.found:
            raise ConfigError(self.found)


class _Required:
    """The default of a key that must be there."""


REQUIRED = _Required()

SMALL = 1e-6
"""A positive lower bound below this stands for "more than 0", and the message says so."""


class Table:
    """One table of the file. ``path`` is its dotted name, as the user would write it."""

    def __init__(self, content: Mapping[str, Any], *, path: str, problems: Problems) -> None:
        self._content = content
        self._path = path
        self._problems = problems
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def key(self, key: str) -> str:
        """The dotted name of ``key``."""
        return f"{self._path}.{key}" if self._path else key

    def refuse(self, key: str, problem: str) -> None:
        """Note that the value of ``key`` cannot be used, and why."""
        self._problems.add(self.key(key), problem)

    def _take(self, key: str, default: Any, kind: type | tuple[type, ...], name: str) -> Any:
        self._read.add(key)
        if key not in self._content:
            if default is REQUIRED:
                self.refuse(key, f"missing; {name} is required")
            return None if default is REQUIRED else default
        value = self._content[key]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and not {bool, object} & set(kinds)):
            bare = "; it has neither quotes nor a unit" if isinstance(value, str) and name.endswith("number") else ""
            self.refuse(key, f"{value!r} is not {name}{bare}")
            return None if default is REQUIRED else default
        return value

    def text(self, key: str, *, default: Any = REQUIRED, among: Sequence[str] = ()) -> str:
        """A text, optionally one of ``among``."""
        value = self._take(key, default, str, "a text")
        if among and value is not None and value not in among:
            close = _close(value, among)
            self.refuse(key, f"{value!r} is not one of {', '.join(among)}" + (f"; {close}" if close else ""))
            return among[0]
        return "" if value is None and default is REQUIRED else value

    def flag(self, key: str, *, default: Any = REQUIRED) -> bool:
        """``true`` or ``false``."""
        return bool(self._take(key, default, bool, "true or false"))

    def number(self, key: str, *, default: Any = REQUIRED, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number between ``low`` and ``high``, both included."""
        value = self._take(key, default, (int, float, Decimal), "a number")
        if value is None:
            return low if default is REQUIRED and math.isfinite(low) else 0.0 if default is REQUIRED else default
        if value is default and key in self._content:  # what was there is no number, and is refused already
            return float(value)
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond every float
            number = math.inf
        if not math.isfinite(number) or not low <= number <= high:
            self.refuse(key, f"{value} is out of bounds: it must be {_bounds(low, high)}")
            return max(low, min(high, 0.0))
        return number

    def optional_number(self, key: str, *, low: float = -math.inf, high: float = math.inf) -> float | None:
        """A number, or ``None`` when the key is not there."""
        self._read.add(key)
        return self.number(key, low=low, high=high) if key in self._content else None

    def integer(self, key: str, *, default: Any = REQUIRED, low: int, high: int) -> int:
        """A whole number between ``low`` and ``high``, both included."""
        value = self._take(key, default, int, "a whole number")
        if value is None:
            return low
        if not low <= value <= high:
            self.refuse(key, f"{value} is out of bounds: it must be {_bounds(low, high)}")
            return low
        return int(value)

    def milliseconds(self, key: str, *, default: Any = REQUIRED, low: float, high: float) -> int:
        """A duration in milliseconds, returned in nanoseconds. ``key`` ends with ``_ms``."""
        return ns_from_ms(self.number(key, default=default, low=low, high=high))

    def optional_milliseconds(self, key: str, *, low: float, high: float) -> int | None:
        self._read.add(key)
        return self.milliseconds(key, low=low, high=high) if key in self._content else None

    def numbers(self, key: str) -> dict[str, float]:
        """A table of numbers, ``{name = number}``; empty when absent."""
        table = self.table(key)
        return {name: table.number(name) for name in table.names()}

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty when absent."""
        value = self._take(key, [], list, "a list of texts")
        if not all(isinstance(item, str) for item in value):
            self.refuse(key, f"{value!r} is not a list of texts")
            return ()
        return tuple(value)

    def raw(self, key: str, *, default: Any = REQUIRED, kind: type = dict, name: str = "a table") -> Any:
        """A value handed on unread: its own reader will check it."""
        value = self._take(key, default, kind, name)
        return kind() if value is None and default is REQUIRED else value

    def table(self, key: str) -> Table:
        """A table inside this one; an empty one when absent."""
        return Table(self._take(key, {}, dict, "a table"), path=self.key(key), problems=self._problems)

    def tables(self, key: str) -> list[Table]:
        """A list of tables (``[[key]]``); empty when absent."""
        content = self._take(key, [], list, f"a list of tables, written [[{key}]]")
        if not all(isinstance(item, dict) for item in content):
            self.refuse(key, f"{content!r} is not a list of tables, written [[{key}]]")
            return []
        return [
            Table(item, path=f"{self.key(key)}[{index}]", problems=self._problems) for index, item in enumerate(content)
        ]

    def names(self) -> tuple[str, ...]:
        """The keys that the file has here."""
        return tuple(self._content)

    def close(self) -> None:
        """Refuse every key that nobody asked for."""
        for key in self._content:
            if key not in self._read:
                self.refuse(key, f"unknown key{_nearest(key, sorted(self._read))}")


def _bounds(low: float, high: float) -> str:
    if math.isinf(high):
        return ("more than 0" if 0 < low < SMALL else f"at least {low:g}") if math.isfinite(low) else "finite"
    return f"between {low:g} and {high:g}" if math.isfinite(low) else f"at most {high:g}"


def _close(name: str, known: Sequence[str]) -> str | None:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else None


def _nearest(name: str, known: Sequence[str]) -> str:
    close = _close(name, known)
    if close:
        return f"; {close}"
    return f"; known here: {', '.join(known)}" if known else ""
