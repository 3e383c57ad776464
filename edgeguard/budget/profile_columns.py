"""Columns of numbers, texts and flags in a profile's file, each checked value by value, and requests made of them.

Durations are nanoseconds. A column that cannot be used is noted in the table that it was read from, which names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from edgeguard.budget.profile import RequestTimes
from edgeguard.config.reader import Table
from edgeguard.types.board import ThermalLevel

MOST = 2**63 - 1
LEVELS = tuple(level.label for level in ThermalLevel)
_INTEGERS = {"latency_ns": 1, "price_ns": 1, "dearest_ns": 1, "at_ns": 0, "first_tokens": 0, "ttft_ns": 0}
_READINGS = ("temperature_c", "clock_mhz")


def request_columns(requests: Sequence[RequestTimes]) -> dict[str, list[Any]]:
    """The requests of a profile, a list for each of their parts."""
    columns = {name: [getattr(one, name) for one in requests] for name in RequestTimes.__dataclass_fields__}
    return {**columns, "level": [level.label for level in columns["level"]]}


def read_requests(table: Table) -> tuple[RequestTimes, ...]:
    """What ``request_columns`` wrote."""
    columns: dict[str, Sequence[Any]] = {
        **{name: read_integers(table, name, low=low) for name, low in _INTEGERS.items()},
        **{name: read_column(table, name, _is_reading, "numbers or null") for name in _READINGS},
        "level": [level_of(label) for label in read_column(table, "level", LEVELS.__contains__, "thermal levels")],
        "rung": read_column(table, "rung", lambda value: isinstance(value, str), "texts"),
        "drafted": read_column(table, "drafted", lambda value: isinstance(value, bool), "true and false"),
    }
    table.close()
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        table.refuse("latency_ns", f"the columns must be equally long, not {lengths}")
        return ()
    return tuple(RequestTimes(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))


def read_integers(table: Table, key: str, *, low: int) -> tuple[int, ...]:
    """A column of whole numbers of at least ``low``; empty when one is not."""
    return tuple(read_column(table, key, lambda value: _is_whole(value, low=low), f"whole numbers of at least {low}"))


def read_column(table: Table, key: str, right: Callable[[Any], bool], name: str) -> list[Any]:
    """A list whose every value is ``right``; empty when one is not."""
    values = table.raw(key, kind=list, name=f"a list of {name}")
    wrong = [value for value in values if not right(value)]
    if wrong:
        table.refuse(key, f"{wrong[0]!r} does not belong into a list of {name}")
    return [] if wrong else [float(value) if isinstance(value, Decimal) else value for value in values]


def named_values(data: Any) -> dict[str, Any]:
    """A flat dataclass as its names and values; what is not known has no line."""
    values = {name: getattr(data, name) for name in data.__dataclass_fields__}
    return {name: value for name, value in values.items() if value is not None}


def level_of(label: str) -> ThermalLevel:
    return ThermalLevel(LEVELS.index(label))


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and -MOST < value < MOST


def _is_whole(value: object, *, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


def _is_reading(value: object) -> bool:
    return value is None or is_number(value)
