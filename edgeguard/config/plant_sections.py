"""The sections that describe the plant, as data: what is observed, what can be moved, and what must not be.

Nanoseconds and SI units inside; the file's units are in its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgeguard.config.condition import Condition
from edgeguard.types import Grade


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """``[[field]]``: one field of the observation. Times are monotonic ages."""

    name: str
    kind: str  # "text", "number" or "flag"
    low: float | None
    high: float | None
    decimals: int
    max_chars: int
    max_age_ns: int | None
    stop_words: tuple[str, ...]  # said by the operator, they stop the robot before the model sees them
    examples: tuple[str, ...] = ()  # what such a text may be: measured with, never shown to the model


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisSource:
    """Where an axis gets its value: a numeric field of the answer, or a table from an enum's values.

    ``times``: multiplied by that, as "forward" by "fast".
    """

    field: str
    values: Mapping[str, float] | None
    times: AxisSource | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """``[[axis]]``: one thing the plant can do. Rates are per second of ``unit``, jerk per second squared."""

    name: str
    unit: str
    source: AxisSource
    low: float
    high: float
    rate_up: float
    rate_down: float
    safe: float | None  # None: hold where it is
    measured: str | None
    clamp: bool
    group: str | None  # axes of one group are scaled together when one of them is clamped
    clearance: float | None  # how far it may travel after the last command that could move it
    decel: Mapping[Grade, float]
    jerk: Mapping[Grade, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``[[rule]]``: first match wins. ``axes`` is the motion it proposes; ``None`` is a stop."""

    name: str
    when: Condition | None  # None: always
    grade: Grade
    axes: Mapping[str, float] | None
    always: bool  # checked while the model decides too; else only when the guard has to act


@dataclass(frozen=True, slots=True, kw_only=True)
class Interlock:
    """``[[interlock]]``: while the condition holds or is unknown, the axis may not leave its safe side."""

    name: str
    when: Condition
    axis: str
    low: float
    high: float
