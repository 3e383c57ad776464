"""Whether a run came as its scenario expects: every expectation in words, with what came instead when it did not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise

from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.config import Config
from edgeguard.simulation.expectation import At, Expectation, Stop
from edgeguard.simulation.timeline import Moment, Timeline
from edgeguard.types import Action, Cause

_ROUNDING = 1e-6
"""Of a difference of two set-points, which are float32, at speeds around 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """``words`` say what was expected, and if it was not met, what came."""

    words: str
    met: bool


def judge(expectation: Expectation, timeline: Timeline, config: Config) -> list[Judgement]:
    """Every expectation of the scenario."""
    judgements = [*_whole_run(expectation, timeline)]
    ranges = {axis.name: axis.high - axis.low for axis in config.axes}
    safe = {axis.name: axis.safe or 0.0 for axis in config.axes}
    for axis, limit in expectation.decel.items():
        steepest = _steepest(timeline, axis, safe=safe[axis])
        words = f"no stop slows {axis} down faster than {limit:g} /s"
        judgements.append(_judge(words, f"{steepest:.3g}", met=steepest <= limit))
    for at in expectation.at:
        judgements += _at(at, timeline, ranges)
    for stop in expectation.stops:
        judgements += _stop(stop, timeline, rest=safe[stop.axis])
    return judgements


def _whole_run(expectation: Expectation, timeline: Timeline) -> Iterator[Judgement]:
    if expectation.causes is not None:
        seen = timeline.causes_once_armed
        words = f"once it was armed, these causes arose: {_names(expectation.causes)}"
        yield _judge(words, _names(seen), met=seen == expectation.causes)
    counters = asdict(timeline.counters)
    for name, number in expectation.counters.items():
        yield _judge(f"{name}: {number}", counters[name], met=counters[name] == number)
    if expectation.worker_starts is not None:
        starts = timeline.worker_starts
        words = f"starts of the worker: {expectation.worker_starts}"
        yield _judge(words, starts, met=starts == expectation.worker_starts)


def _at(at: At, timeline: Timeline, ranges: dict[str, float]) -> Iterator[Judgement]:
    when = f"at {ms_from_ns(at.at_ns):g} ms"
    if at.mode is not None:
        mode = timeline.mode_at(at.at_ns)
        yield _judge(f"{when} it is {at.mode.value}", mode.value if mode else "not begun", met=mode is at.mode)
    if at.causes is not None:
        causes = timeline.causes_at(at.at_ns)
        yield _judge(f"{when} these causes hold: {_names(at.causes)}", _names(causes), met=causes == at.causes)
    if at.plan is not None:
        plan = timeline.plan_at(at.at_ns) or ""
        words = f"{when} the plan {at.plan!r} answers" if at.plan else f"{when} no plan answers"
        yield _judge(words, repr(plan) if plan else "none", met=plan == at.plan)
    for axis, value in at.measured.items():
        measured = timeline.moment_at(at.at_ns).measured[axis]
        met = abs(measured - value) <= ranges[axis] / 100
        yield _judge(f"{when} {axis} is at {value:g}", f"{measured:.3g}", met=met)


def _stop(stop: Stop, timeline: Timeline, *, rest: float) -> Iterator[Judgement]:
    moving = [moment for moment in timeline.moments if moment.at_ns >= stop.after_ns]
    at_rest = next((index for index, one in enumerate(moving) if one.measured[stop.axis] == rest), None)
    took_ns = None if at_rest is None else moving[at_rest].at_ns - stop.after_ns
    yield _judge(
        f"from {ms_from_ns(stop.after_ns):g} ms on {stop.axis} comes to rest within {ms_from_ns(stop.within_ns):g} ms",
        "never" if took_ns is None else f"{ms_from_ns(took_ns):g} ms",
        met=took_ns is not None and took_ns <= stop.within_ns,
    )
    if stop.travel is not None:
        travel = _travel(moving[: None if at_rest is None else at_rest + 1], stop.axis, rest=rest)
        words = f"until then it goes no farther than {stop.travel:g}"
        yield _judge(words, f"{travel:.3g}", met=travel <= stop.travel)


def _steepest(timeline: Timeline, axis: str, *, safe: float) -> float:
    """The greatest deceleration that the guard's stops ask for, per second: from one frame of a stop to the next."""
    return max(
        (
            (abs(before.axes[axis] - safe) - abs(after.axes[axis] - safe) - _ROUNDING) * NS_PER_S / (to_ns - from_ns)
            for (from_ns, before), (to_ns, after) in pairwise(timeline.sent)
            if before.action is after.action is Action.STOP
        ),
        default=0.0,
    )


def _travel(moments: list[Moment], axis: str, *, rest: float) -> float:
    return sum(
        (abs(before.measured[axis] - rest) + abs(after.measured[axis] - rest))
        / 2
        * (after.at_ns - before.at_ns)
        / NS_PER_S
        for before, after in pairwise(moments)
    )


def _judge(words: str, came: object, *, met: bool) -> Judgement:
    return Judgement(words=words if met else f"{words}; but: {came}", met=met)


def _names(causes: frozenset[Cause]) -> str:
    return ", ".join(cause.value for cause in Cause if cause in causes) or "none"
