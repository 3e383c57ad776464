"""The timeline of a recorded drive: its steps through the core once more, with what the motor controller measured.

Times count from the first step of the drive, or of the stretch of it that is asked for. Knows nothing of how it is
drawn. Only the last start in the log is told; steps behind a gap wait for the next recorded state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from edgeguard.config.plant_sections import Axis
from edgeguard.errors import FlightLogError
from edgeguard.guard.core import step
from edgeguard.recorder.log import FlightEntry
from edgeguard.recorder.record import FlightHeader, FlightStep
from edgeguard.simulation.timeline import Moment, Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """One start of the guard, and what came of it."""

    created: str
    axes: tuple[Axis, ...]
    timeline: Timeline


def recorded_drive(entries: Iterable[FlightEntry], *, from_ns: int = 0, to_ns: int | None = None) -> Drive:
    """The last start in ``entries``, or the stretch of it between two times since its first step."""
    header: FlightHeader | None = None
    steps: list[FlightStep] = []
    for entry in entries:
        if isinstance(entry, FlightHeader):
            header, steps = entry, []
        elif isinstance(entry, FlightStep):
            steps.append(entry)
    if header is None or not steps:
        raise FlightLogError("the log holds no step that could be drawn")
    begin_ns = steps[0].now_ns + from_ns
    end_ns = min(steps[-1].now_ns, steps[0].now_ns + to_ns) if to_ns is not None else steps[-1].now_ns
    if end_ns <= begin_ns:
        raise FlightLogError("the log holds no step in the stretch that is asked for")
    config = header.config()
    timeline = Timeline(duration_ns=end_ns - begin_ns, ladder=tuple(rung.name for rung in config.plans))
    settings, state = header.settings(config), None
    for one in steps:
        state = one.before or state
        if state is None:
            continue
        state, effects = step(settings, state, one.now_ns, one.inputs)
        if begin_ns <= one.now_ns <= end_ns:
            at_ns = one.now_ns - begin_ns
            timeline.note_step(at_ns, state, effects)
            timeline.moments.append(Moment(at_ns=at_ns, measured=_measured(one, config.axes)))
    return Drive(created=header.created, axes=config.axes, timeline=timeline)


def _measured(one: FlightStep, axes: tuple[Axis, ...]) -> dict[str, float]:
    """By the echo; NaN, which leaves a gap in a line, where there is none."""
    echo = one.inputs.link.echo
    values = {} if echo is None else echo.axes
    return {axis.name: math.nan if (value := values.get(axis.name)) is None else value for axis in axes}
