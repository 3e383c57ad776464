"""What holds in every run, whatever a scenario scripts: a stop never speeds up, and only who may moves the robot.

Judged by what the axes do at the motors, whatever the guard believes. Nanoseconds from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from edgeguard.clock import NS_PER_MS, ms_from_ns
from edgeguard.config.plant_sections import Axis
from edgeguard.simulation.judgement import Judgement
from edgeguard.simulation.timeline import Timeline
from edgeguard.types import Action, Mode

_IN_FLIGHT_NS = 8 * NS_PER_MS
"""What the last command before a stop may still do: its time on the line and the motor controller's latency."""

_ROUNDING = 1e-6


def judge_invariants(timeline: Timeline, axes: Sequence[Axis]) -> list[Judgement]:
    """Each of them, with the first moment that broke it."""
    return [
        _only_who_may_moves(timeline),
        *(_stops_slow_down(timeline, axis) for axis in axes if axis.safe is not None),
    ]


def _only_who_may_moves(timeline: Timeline) -> Judgement:
    may = (Mode.ARMED, Mode.INTERVENING)
    broken = next(
        (
            at_ns
            for at_ns, set_point in timeline.sent
            if set_point.action is Action.MOVE and timeline.mode_at(at_ns) not in may
        ),
        None,
    )
    return _judgement("the robot moves only while armed, or by a rule while intervening", broken)


def _stops_slow_down(timeline: Timeline, axis: Axis) -> Judgement:
    safe, broken = axis.safe or 0.0, None
    stops = _stops(timeline)
    for before, after in pairwise(timeline.moments):
        if any(begin_ns <= before.at_ns and after.at_ns <= end_ns for begin_ns, end_ns in stops):
            speed, then = (abs(one.measured[axis.name] - safe) for one in (before, after))
            if then > speed + _ROUNDING:
                broken = after.at_ns
                break
    return _judgement(f"no stop moves {axis.name} away from its safe value", broken)


def _stops(timeline: Timeline) -> list[tuple[int, int]]:
    """From when to when stops are in force at the motor controller."""
    commands = [(at_ns, set_point.action is Action.STOP) for at_ns, set_point in timeline.sent]
    ends = [*commands[1:], (timeline.duration_ns, False)]
    spans = [(begin_ns, end_ns, stop) for (begin_ns, stop), (end_ns, _) in zip(commands, ends, strict=True)]
    runs = [list(run) for stop, run in groupby(spans, key=lambda span: span[2]) if stop]
    return [(run[0][0] + _IN_FLIGHT_NS, run[-1][1]) for run in runs]


def _judgement(words: str, broken_ns: int | None) -> Judgement:
    when = "" if broken_ns is None else f"; but: at {ms_from_ns(broken_ns):g} ms"
    return Judgement(words=words + when, met=broken_ns is None)
