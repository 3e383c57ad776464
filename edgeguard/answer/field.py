"""One field of an answer: a name and a finite, ordered set of JSON values.

A value is a text, a boolean, null, or an exact number (``int`` or ``Decimal``, never a binary float), and it has one
canonical JSON text. A field knows its members without listing them, so a grid may be checked in the guard's process
at no cost. Where the set comes from is the schema's business; what its texts cost is the tokenizer's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import TypeAlias, TypeGuard

Scalar: TypeAlias = str | bool | int | Decimal | None

EXACT = Context(prec=60)
"""Decimal's operators round to the thread's context, which any library may have changed; ours is wide enough."""


def spell(value: Scalar) -> str:
    """The JSON text of ``value``; a decimal keeps its digits as they are (0.40 stays 0.40), without exponent."""
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A field whose values are listed: an enum, a constant, a boolean. Numbers are equal by value, 1 is not true."""

    name: str
    values: tuple[Scalar, ...]
    _members: dict[tuple[bool, Scalar], Scalar] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_members", {_identity(value): value for value in self.values})

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self._members.values())

    def accepts(self, value: object) -> bool:
        return _is_scalar(value) and _identity(value) in self._members

    def text(self, value: object) -> str:
        """The canonical JSON text of a value that the field accepts; else ``ValueError``."""
        if not _is_scalar(value) or _identity(value) not in self._members:
            raise ValueError(f"{self.name}: {value!r} is not one of its values")
        return spell(self._members[_identity(value)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A field of evenly spaced numbers: ``step`` times each of ``multiples``.

    Every text has the decimals of ``step`` (0.0, 0.5, 1.0): the point is then forced and costs no pass.
    """

    name: str
    step: Decimal
    multiples: range

    def __len__(self) -> int:
        return len(self.multiples)

    def __iter__(self) -> Iterator[Decimal]:
        return map(self._value, self.multiples)

    @property
    def first(self) -> Decimal:
        return self._value(self.multiples[0])

    @property
    def last(self) -> Decimal:
        return self._value(self.multiples[-1])

    def accepts(self, value: object) -> bool:
        return self._multiple(value) is not None

    def text(self, value: object) -> str:
        """The canonical JSON text of a value that the field accepts; else ``ValueError``."""
        multiple = self._multiple(value)
        if multiple is None:
            raise ValueError(f"{self.name}: {value!r} is not on its grid")
        return spell(self._value(multiple))

    def _value(self, multiple: int) -> Decimal:
        return EXACT.multiply(self.step, multiple)

    def _multiple(self, value: object) -> int | None:
        if not _is_scalar(value) or isinstance(value, (bool, str, type(None))):
            return None
        if not self.first <= value <= self.last:  # first of all: the quotient of 1E+999999 would exceed any context
            return None
        multiple = int(EXACT.divide_int(Decimal(value), self.step))
        return multiple if multiple in self.multiples and self._value(multiple) == value else None


Field: TypeAlias = Choice | Grid
"""``len()`` counts the values, iterating gives them in order; ``accepts`` and ``text`` work by value."""


def _is_scalar(value: object) -> TypeGuard[Scalar]:
    if isinstance(value, Decimal):
        return value.is_finite()
    return value is None or isinstance(value, (str, int))


def _identity(value: Scalar) -> tuple[bool, Scalar]:
    return isinstance(value, bool), value
