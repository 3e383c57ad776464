"""What happened in a run, line by line: the script and what the guard made of it, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgeguard.guard.events import EventName
from edgeguard.simulation.timeline import Timeline
from edgeguard.types import Event, Mode

_MODES = {mode.value for mode in Mode}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """``scripted``: it was done to the robot; else the guard did it, and ``mode`` is the one it went to, if it did."""

    at_ns: int
    words: str
    scripted: bool = False
    mode: Mode | None = None


def tell(timeline: Timeline) -> list[Line]:
    """Everything but the end of a cause, and but a cause that the change of mode beside it names already."""
    changes = {at_ns for at_ns, event in timeline.events if event.name in _MODES}
    lines = [Line(at_ns=at_ns, words=label, scripted=True) for at_ns, label in timeline.script]
    for at_ns, event in timeline.events:
        lines += _line(at_ns, event, beside_change=at_ns in changes)
    answering = ""
    for span in timeline.plans:
        if span.plan != answering:
            lines.append(Line(at_ns=span.begin_ns, words=f"plan {span.plan!r} answers"))
        answering = span.plan
    return sorted(lines, key=lambda line: line.at_ns)


def _line(at_ns: int, event: Event, *, beside_change: bool) -> Iterator[Line]:
    if event.name in _MODES:
        yield Line(at_ns=at_ns, words=f"{event.name}: {event.detail}", mode=Mode(event.name))
    elif event.name == EventName.RAISED and not beside_change:
        yield Line(at_ns=at_ns, words=event.detail)
    elif event.name not in (EventName.RAISED, EventName.CLEARED):
        yield Line(at_ns=at_ns, words=f"{event.name}: {event.detail}")
