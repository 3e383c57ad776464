"""Conditions of rules, as data. They are evaluated, in three values, by ``edgeguard.guard.rules``.

In the file a condition is an inline table::

    { field = "front_m", below = 0.4 }                       a number against a bound (below, above)
    { field = "front_m", below = 0.4, until_above = 0.6 }    with a hysteresis band
    { field = "said", equals = "stop" }                      a text, a number or true/false
    { field = "front_m", older_than_ms = 300 }               the age of a field
    { all = [ … ] }   { any = [ … ] }   { not = { … } }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from edgeguard.config.reader import Problems, Table
from edgeguard.types import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """``below`` or ``above`` a bound; once true it stays true until ``until`` is crossed the other way."""

    field: str
    below: float | None = None
    above: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals:
    field: str
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class OlderThan:
    field: str
    age_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    part: Condition


Condition: TypeAlias = Compare | Equals | OlderThan | All | AnyOf | Not

_COMPARISONS = ("below", "until_above", "above", "until_below", "equals", "older_than_ms")
_FORMS = "field with below, above, equals or older_than_ms; all = […]; any = […]; not = {…}"


def read_condition(content: Mapping[str, Any], *, path: str, problems: Problems) -> Condition:
    """The condition in one inline table; problems are noted, and then a harmless one is returned."""
    table = Table(content, path=path, problems=problems)
    condition = _read(table, path=path, problems=problems)
    table.close()
    return condition


def leaves(condition: Condition) -> Iterator[Compare | Equals | OlderThan]:
    """The comparisons that a condition is made of."""
    if isinstance(condition, (All, AnyOf)):
        for part in condition.parts:
            yield from leaves(part)
    elif isinstance(condition, Not):
        yield from leaves(condition.part)
    else:
        yield condition


def _read(table: Table, *, path: str, problems: Problems) -> Condition:
    for key, kind in (("all", All), ("any", AnyOf)):
        if key in table:
            parts = table.raw(key, kind=list, name="a list of conditions")
            if not parts or not all(isinstance(part, dict) for part in parts):
                table.refuse(key, "must be a list of at least one condition")
                return kind(parts=())
            return kind(
                parts=tuple(
                    read_condition(part, path=f"{path}.{key}[{index}]", problems=problems)
                    for index, part in enumerate(parts)
                )
            )
    if "not" in table:
        return Not(part=read_condition(table.raw("not"), path=f"{path}.not", problems=problems))
    if "field" not in table:
        problems.add(path, f"not a condition; a condition is one of: {_FORMS}")
        for name in table.names():
            table.raw(name, kind=object)
        return All(parts=())
    return _read_field(table, field=table.text("field"))


def _read_field(table: Table, *, field: str) -> Condition:
    if "equals" in table:
        return Equals(field=field, value=table.raw("equals", kind=object))
    if "older_than_ms" in table:
        return OlderThan(field=field, age_ns=table.milliseconds("older_than_ms", low=0, high=3_600_000))
    if "below" in table:
        below, until = table.number("below"), table.optional_number("until_above")
        if until is not None and until < below:
            table.refuse("until_above", f"{until:g} must not be less than below ({below:g})")
        return Compare(field=field, below=below, until=until)
    if "above" in table:
        above, until = table.number("above"), table.optional_number("until_below")
        if until is not None and until > above:
            table.refuse("until_below", f"{until:g} must not be more than above ({above:g})")
        return Compare(field=field, above=above, until=until)
    table.refuse("field", f"{field!r} is compared with nothing; a condition is one of: {_FORMS}")
    for key in _COMPARISONS:  # known, so that a slip in one of them is answered with it
        table.raw(key, default=None, kind=object)
    return All(parts=())
