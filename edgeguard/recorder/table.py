"""The decisions of a flight as a table: one row per cycle, typed columns, times in milliseconds.

What files for people and their programs show (CSV, Parquet, MCAP). A value that there is not is ``None``. The columns
behind the fixed ones are the configuration's: ``observation.*``, ``answer.*`` and ``axis.*``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from edgeguard.answer import Field, Grid, read_schema
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.guard.rules import number
from edgeguard.recorder.flight import Cycle
from edgeguard.recorder.record import FlightHeader
from edgeguard.types import Answer, Budget, CycleRecord, Value

Kind: TypeAlias = Literal["number", "integer", "text", "flag"]
Cell: TypeAlias = float | int | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``about`` is for people, and goes into schemas."""

    name: str
    kind: Kind
    about: str
    value: Callable[[Cycle], Cell]


def columns(header: FlightHeader) -> tuple[Column, ...]:
    """Those of every flight, then those of this one's configuration."""
    config = header.config()
    kinds: dict[str, Kind] = {"number": "number", "text": "text", "flag": "flag"}
    return (
        *_FIXED,
        *(_named("observation", spec.name, kinds[spec.kind], _observed) for spec in config.fields),
        *(_named("answer", field.name, _kind_of(field), _answered) for field in read_schema(config.schema)),
        *(_named("axis", axis.name, "number", _set_point) for axis in config.axes),
    )


def _kind_of(field: Field) -> Kind:
    values = [field.first, field.last] if isinstance(field, Grid) else list(field)
    if all(isinstance(value, bool) for value in values):
        return "flag"
    if all(isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) for value in values):
        return "number"
    return "text"


def command_ns(record: CycleRecord) -> int | None:
    """From the capture of the observation to the command's last byte on the wire."""
    if record.observation is None or record.on_wire_ns is None:
        return None
    return record.on_wire_ns - record.observation.captured_ns


def _named(group: str, name: str, kind: Kind, values: Callable[[CycleRecord], Mapping[str, Value]]) -> Column:
    return _fixed(f"{group}.{name}", kind, "", lambda record: _cell(values(record).get(name), kind))


def _cell(value: Value, kind: Kind) -> Cell:
    """``value`` if it is of the column's kind: a sensor may say anything, also half a character."""
    if kind == "number":
        return number(value)
    if kind == "flag":
        return value if isinstance(value, bool) else None
    return None if value is None else str(value).encode(errors="replace").decode()


def _observed(record: CycleRecord) -> Mapping[str, Value]:
    return {} if record.observation is None else record.observation.fields


def _answered(record: CycleRecord) -> Mapping[str, Value]:
    return {} if record.answer is None or record.answer.values is None else record.answer.values


def _set_point(record: CycleRecord) -> Mapping[str, Value]:
    return record.decision.set_point.axes


def _ms(value_ns: int | None) -> float | None:
    return None if value_ns is None else round(ms_from_ns(value_ns), 3)


def _fixed(name: str, kind: Kind, about: str, value: Callable[[CycleRecord], Cell]) -> Column:
    return Column(name=name, kind=kind, about=about, value=lambda cycle: value(cycle.record))


def _of_budget(value: Callable[[Budget], Cell]) -> Callable[[CycleRecord], Cell]:
    return lambda record: None if record.budget is None else value(record.budget)


def _of_answer(value: Callable[[Answer], Cell]) -> Callable[[CycleRecord], Cell]:
    return lambda record: None if record.answer is None else value(record.answer)


_FIXED = (
    Column(name="at_s", kind="number", about="since the guard's first step", value=lambda one: one.at_ns / NS_PER_S),
    _fixed("decided_ns", "integer", "monotonic time of the decision", lambda one: one.decision.decided_ns),
    _fixed("cycle", "integer", "number of the decision", lambda one: one.cycle),
    _fixed("epoch", "integer", "rises at every trip, restart and reconnect", lambda one: one.epoch),
    _fixed("mode", "text", "where the guard stood", lambda one: one.decision.mode.value),
    _fixed("source", "text", "who proposed the command", lambda one: one.decision.source.value),
    _fixed("shadow", "flag", "asked to prove the model, never sent", lambda one: one.shadow),
    _fixed("grade", "text", "severity", lambda one: one.decision.grade.name.lower()),
    _fixed("causes", "text", "separated by ;", lambda one: "; ".join(cause.value for cause in one.decision.causes)),
    _fixed("detail", "text", "the worst cause in words", lambda one: one.decision.detail),
    _fixed("rule", "text", "the rule that acted", lambda one: one.decision.rule),
    _fixed("action", "text", "asked of the plant", lambda one: one.decision.set_point.action.value),
    _fixed("life_ms", "integer", "of the command", lambda one: one.decision.set_point.life_ms),
    _fixed("adjusted", "text", "by the envelope, separated by ;", lambda one: "; ".join(one.decision.adjusted)),
    _fixed("command_ms", "number", "from capture to the last byte on the wire", lambda one: _ms(command_ns(one))),
    _fixed("age_ms", "number", "of the observation on arrival", _of_budget(lambda one: _ms(one.age_ns))),
    _fixed(
        "slack_ms",
        "number",
        "that the bound of the plan that promises most left",
        _of_budget(lambda one: _ms(one.slack_ns)),
    ),
    _fixed("finish", "text", "how the request ended", _of_answer(lambda one: one.finish.value)),
    _fixed("rung", "text", "the plan that ran", _of_answer(lambda one: one.rung)),
    _fixed("bound_ms", "number", "of that plan, in the worker", _of_answer(lambda one: _ms(one.bound_ns))),
    _fixed("passes", "integer", "forward passes", _of_answer(lambda one: len(one.passes))),
    _fixed("ttft_ms", "number", "time to first token", _of_answer(lambda one: _ms(one.ttft_ns))),
    _fixed("answer_ms", "number", "in the worker", _of_answer(lambda one: _ms(one.finished_ns - one.started_ns))),
)
