"""What the keys of an event say: read as the world takes it, and told to people.

What is wrong is noted in the table that it stands in. Spans are nanoseconds inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from edgeguard.clock import ms_from_ns, ns_from_ms
from edgeguard.config import Config
from edgeguard.config.reader import Table
from edgeguard.types import Cause

LONGEST_MS = 3_600_000


def read_fields(table: Table, key: str, config: Config) -> dict[str, Any]:
    """Field names with their readings; numbers as floats, as a driver gives them."""
    fields = table.raw(key)
    check_names(table, key, fields, known=[spec.name for spec in config.fields], what="[[field]]")
    return {name: float(value) if isinstance(value, Decimal) else value for name, value in fields.items()}


def read_missing(table: Table, key: str, config: Config) -> tuple[str, ...]:
    """Names of fields."""
    names = table.texts(key)
    check_names(table, key, names, known=[spec.name for spec in config.fields], what="[[field]]")
    return names


def read_causes(table: Table, key: str, _config: Config) -> dict[Cause, str]:
    """Causes that hold, each with what people are told of it."""
    texts = table.table(key)
    conditions = {name: texts.text(name) for name in texts.names()}
    check_names(table, key, conditions, known=[cause.value for cause in Cause], what="cause")
    return {cause: conditions[cause.value] for cause in Cause if cause.value in conditions}


def read_cleared(table: Table, key: str, _config: Config) -> tuple[Cause, ...]:
    """Names of causes."""
    names = table.texts(key)
    check_names(table, key, names, known=[cause.value for cause in Cause], what="cause")
    return tuple(cause for cause in Cause if cause.value in names)


def read_durations(table: Table, key: str, _config: Config) -> tuple[int, ...]:
    """One for all, or several: latencies that are taken in turn, a bound for each thermal level that was reached."""
    value = table.raw(key, kind=object, name="milliseconds, or a list of them")
    given = value if isinstance(value, list) else [value]
    if not given or not all(isinstance(one, (int, Decimal)) and 0 <= one <= LONGEST_MS for one in given):
        table.refuse(key, f"{value} is neither milliseconds nor a list of them (0 to {LONGEST_MS})")
        return (0,)
    return tuple(ns_from_ms(float(one)) for one in given)


def check_names(table: Table, key: str, names: Any, *, known: list[str], what: str) -> None:
    """Note every name that is not known."""
    for name in names:
        if name not in known:
            table.refuse(key, f"no {what} is named {name!r}; known: {', '.join(known)}")


def read_milliseconds(table: Table, key: str, _config: Config) -> int:
    """A span of at most an hour."""
    return table.milliseconds(key, low=0, high=LONGEST_MS)


def say_fields(fields: Mapping[str, Any]) -> str:
    """``said = go on, docked = true``."""
    return ", ".join(
        f"{name} = {str(value).lower() if isinstance(value, bool) else value}" for name, value in fields.items()
    )


def say_durations(durations_ns: tuple[int, ...]) -> str:
    """``110, 400 ms``."""
    return ", ".join(f"{ms_from_ns(one):g}" for one in durations_ns) + " ms"
