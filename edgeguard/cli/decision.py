"""A decision, or an event, on one line: for whoever reads a flight as it goes by."""

from __future__ import annotations

from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.recorder.table import command_ns
from edgeguard.types import CycleRecord, Event, Source

HEADER = f"{'seconds':>10} {'cycle':>7} {'mode':<11} {'by':<6} {'took':>7}  command  the answer, or why not"
"""Of ``decision_line``."""

REST = 20
"""The column from which on an event says what it is; what does not fit the terminal goes on there."""


def decision_line(record: CycleRecord, *, at_ns: int) -> str:
    """Time, cycle, mode, who decided, time to command, set-point, and the answer or why there is none."""
    decision = record.decision
    took_ns = command_ns(record)
    took = "      ·" if took_ns is None else f"{ms_from_ns(took_ns):4.0f} ms"
    axes = " ".join(f"{name} {value:.3g}" for name, value in decision.set_point.axes.items())
    source = "shadow" if record.shadow and decision.source is Source.SAFE else decision.source.value
    return (
        f"{at_ns / NS_PER_S:10.3f} {record.cycle:7} {decision.mode.value:<11} {source:<6} {took}  "
        f"{decision.set_point.action.value} {axes}  {_why(record)}"
    ).rstrip()


def event_line(event: Event, *, at_ns: int) -> str:
    return f"{at_ns / NS_PER_S:10.3f}         {event.name}: {event.detail}"


def _why(record: CycleRecord) -> str:
    decision = record.decision
    if decision.source is Source.MODEL and record.answer is not None and record.answer.values is not None:
        plan = f"{record.answer.rung}: " if record.answer.rung else ""
        return plan + " ".join(f"{name}={value}" for name, value in record.answer.values.items())
    return decision.detail or ", ".join(cause.value for cause in decision.causes)
