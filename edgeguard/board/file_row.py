"""One row of the table: sensors that are files, how they are found, named and read.

A value outside of what its kind can be is no reading. Units are those of ``edgeguard.board.reading``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeguard.board.files import read_file, read_text
from edgeguard.board.reading import Kind, Sensor
from edgeguard.board.trip_points import trip_points

COLDEST_C, HOTTEST_C = -40.0, 150.0
"""What silicon can be and still answer: the industrial range, and above every trip point."""


def number(text: str) -> float:
    """A whole number, as nearly all of these files have it."""
    return float(int(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """``files`` is a pattern under the root; ``scale`` times what a file says is in the kind's unit.

    ``owner``: the file beside it that says whose it is (without one, its folder's name does); ``only``: which of those
    the row is about. ``name`` may use {owner}, {file} and {above} (the folder above its own); ``label`` is a file
    beside it that has a better one, and ``times`` one by which the value is multiplied, both with the number in the
    value's file for ``#``.
    """

    board: str
    kind: Kind
    files: str
    scale: float = 1.0
    decode: Callable[[str], float] = number
    owner: str | None = None
    only: str = ".*"
    name: str = "{owner}"
    label: str | None = None
    times: str | None = None

    def find(self, root: Path) -> Iterator[tuple[Path, Sensor]]:
        """Its sensors under ``root``, each with its file, in the order of their numbers."""
        for file in sorted(root.glob(self.files), key=_natural):
            owner = file.parent.name if self.owner is None else read_text(file.parent / self.owner) or ""
            if re.fullmatch(self.only, owner):
                passive_c, critical_c = trip_points(file) if self.kind is Kind.TEMPERATURE else (None, None)
                yield (
                    file,
                    Sensor(
                        name=self._name(file, owner),
                        kind=self.kind,
                        measure=_Measure(row=self, file=file),
                        passive_c=passive_c,
                        critical_c=critical_c,
                    ),
                )

    def _name(self, file: Path, owner: str) -> str:
        label = None if self.label is None else read_text(_beside(file, self.label))
        return label or self.name.format(owner=owner or file.parent.name, file=file.name, above=file.parent.parent.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measure:
    """Reads one file of one row."""

    row: FileRow
    file: Path

    def __call__(self) -> float:
        value = self._read(self.file) * self.row.scale
        if self.row.times is not None:
            value *= self._read(_beside(self.file, self.row.times))
        return plausible(value, self.row.kind)

    def _read(self, file: Path) -> float:
        text = read_file(file)
        try:
            return self.row.decode(text)
        except (ValueError, OverflowError):
            raise ValueError(f"not a number: {text[:40]!r}") from None


def plausible(value: float, kind: Kind) -> float:
    """``value``, if it can be one of its kind. ``ValueError`` for a driver's way to say that it has none.

    Those are -274 and -127 °C, and 0, -1, -256 or an error's number as thousandths of a degree: a temperature between
    -1 and 0 °C is taken for one of these, and a board that really has it will have another in a moment.
    """
    if kind is Kind.TEMPERATURE:
        possible = COLDEST_C < value < HOTTEST_C and not -1.0 < value <= 0.0
    else:
        possible = value > 0 if kind in (Kind.CLOCK, Kind.CAP) else value >= 0
    if not possible:
        raise ValueError(f"cannot be: {value:g} {kind.value}")
    return value


def _beside(file: Path, pattern: str) -> Path:
    """``temp#_label`` beside ``temp2_input`` is ``temp2_label``."""
    digits = re.search(r"\d+", file.name)
    return file.with_name(pattern.replace("#", digits[0] if digits else ""))


def _natural(path: Path) -> list[str | int]:
    """zone10 comes after zone9. Text and numbers take turns, so that like is compared with like."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", str(path))]
