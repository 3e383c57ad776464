"""What a flight comes to: who decided and why not the model, how long it took, and what is missing of the record.

Milliseconds and seconds, for people. Percentiles are the recording's own, not bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.plain import from_plain
from edgeguard.recorder.flight import Flight, Glance
from edgeguard.recorder.log import Flaw
from edgeguard.recorder.record import load_document
from edgeguard.recorder.table import command_ns
from edgeguard.types import CycleRecord, Finish

PERCENTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(slots=True, kw_only=True)
class FlightStatistics:
    """Of one flight. ``command_ms`` and ``ttft_ms`` by name: ``p50``, ``p90``, ``p99``, ``p99.9`` and ``max``."""

    created: str
    config_file: str
    duration_s: float = 0.0
    steps: int = 0
    decisions: int = 0
    late: int = 0  # a command was on the wire after the deadline
    unsent: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    plans: Counter[str] = field(default_factory=Counter)  # answers by the plan of the ladder
    command_ms: dict[str, float] = field(default_factory=dict)
    ttft_ms: dict[str, float] = field(default_factory=dict)
    flaws: list[Flaw] = field(default_factory=list)


def statistics_of(flight: Flight) -> FlightStatistics:
    """Everything in the flight, once through."""
    config = flight.header.config()
    found = FlightStatistics(created=flight.header.created, config_file=flight.header.config_file)
    command: list[float] = []
    ttft: list[float] = []
    first_ns: int | None = None
    for step in flight.glances():
        if not isinstance(step, Glance):
            found.flaws.append(step)
            continue
        first_ns = step.now_ns if first_ns is None else first_ns
        found.steps += 1
        found.duration_s = (step.now_ns - first_ns) / NS_PER_S
        if not step.eventful:
            continue
        effects = load_document(step.document)["effects"]
        found.events.update(event["name"] for event in effects["events"])
        if effects["record"] is not None:
            record = from_plain(CycleRecord, effects["record"])
            _count(found, record, command, deadline_ns=config.timing.deadline_ns)
            if record.answer is not None and record.answer.ttft_ns is not None:
                ttft.append(record.answer.ttft_ns / NS_PER_MS)
    found.command_ms, found.ttft_ms = percentiles(command), percentiles(ttft)
    return found


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The nearest rank of each, and the greatest; empty when there is no value."""
    ordered = sorted(values)
    if not ordered:
        return {}
    named = {f"p{100 * one:g}": ordered[max(0, math.ceil(one * len(ordered)) - 1)] for one in PERCENTILES}
    return {**{name: round(value, 3) for name, value in named.items()}, "max": round(ordered[-1], 3)}


def _count(found: FlightStatistics, record: CycleRecord, command: list[float], *, deadline_ns: int) -> None:
    decision = record.decision
    found.decisions += 1
    found.sources[decision.source.value] += 1
    found.modes[decision.mode.value] += 1
    found.causes.update(cause.value for cause in decision.causes)
    if record.answer is not None and record.answer.finish is Finish.COMPLETE and record.answer.rung:
        found.plans[record.answer.rung] += 1
    took_ns = command_ns(record)
    if took_ns is not None:
        command.append(took_ns / NS_PER_MS)
        found.late += took_ns > deadline_ns
    found.unsent += record.on_wire_ns is None
