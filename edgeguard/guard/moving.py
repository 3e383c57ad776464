"""From what is decided to the next set-point: follow the model or a rule, or stop, within every limit.

Each tick goes on from the last set-point; a stop that begins and a motion that begins start from what is measured
(``ramp.start_of``). Life counts from the capture of the observation and is shortened by the time on the wire, because
the motor controller counts from the frame's arrival. Whatever held before, there is always a set-point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.guard.envelope import Verdict, admit
from edgeguard.guard.events import EventName, event
from edgeguard.guard.mapping import as_float32
from edgeguard.guard.ramp import brake, follow, start_of
from edgeguard.guard.rules import choose, engaged_rails, holds, number
from edgeguard.guard.settings import AxisLimits, Motive
from edgeguard.guard.state import AxisMotion, Motion
from edgeguard.guard.turn import Turn
from edgeguard.types import Action, Grade, Mode, SetPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What every axis is to do: follow its target, or stop (``None``) with what ``grade`` allows."""

    action: Action
    grade: Grade
    targets: tuple[float | None, ...]
    life_ms: int
    pulled: frozenset[int] = frozenset()
    adjusted: tuple[str, ...] = ()


def intend(turn: Turn) -> Intent:
    """What is to be done now. Stops only, unless the guard is armed with a living command, or a rule moves."""
    rule, intent, detail = None, None, ""
    if turn.mode is Mode.ARMED:
        intent = _model(turn)
    elif turn.mode is Mode.INTERVENING:
        leaving = turn.ledger.leaving
        may_move = _may_move(turn) and not leaving
        motive = choose(turn.settings.motives, turn.view, may_move=may_move, leaving=leaving, last=turn.rule)
        rule, intent = motive.name, _rule(turn, motive)
        detail = rule if holds(motive, turn.view) else f"{rule} (its condition is unknown)"
    if rule != turn.rule and rule is not None:
        turn.events.append(event(turn.now_ns, EventName.RULE, detail))
    turn.rule = rule
    return intent or _stop(turn, Grade.COMFORTABLE)


def move(turn: Turn, intent: Intent) -> SetPoint:
    """The next set-point on the way of ``intent``, which becomes the last one."""
    settings, motion = turn.settings, turn.motion
    last = rest(settings.axes) if motion is None else _stopped_without_us(turn, motion) or motion.axes
    since_ns = turn.now_ns if motion is None else motion.at_ns
    dt_s = min(turn.now_ns - since_ns, settings.tick_ns) / NS_PER_S
    axes = [
        _stop_axis(turn, axis, at, grade=intent.grade, dt_s=dt_s)
        if target is None
        else _follow_axis(turn, axis, at, target, pulled=index in intent.pulled, dt_s=dt_s)
        for index, (axis, at, target) in enumerate(zip(settings.axes, last, intent.targets, strict=True))
    ]
    turn.motion = Motion(axes=tuple(axes), at_ns=turn.now_ns)
    values = {axis.name: _encoded(axis, at) for axis, at in zip(settings.axes, axes, strict=True)}
    known = None not in [at.value for at in axes]
    return SetPoint(axes=values, action=intent.action if known else Action.HOLD, life_ms=intent.life_ms)


def rest(axes: tuple[AxisLimits, ...]) -> tuple[AxisMotion, ...]:
    """Before the first set-point: at the safe values, and nobody knows where the others are."""
    return tuple(AxisMotion(value=axis.safe) for axis in axes)


def _stopped_without_us(turn: Turn, motion: Motion) -> tuple[AxisMotion, ...] | None:
    """Behind a silence of more than the link time-out, suspended or not, the motor controller has begun a stop.

    What it had last from us would speed it up again, and what is measured is as old as the silence.
    """
    silent_ns = turn.now_ns - motion.at_ns + turn.suspended_ns
    if silent_ns <= turn.settings.link_timeout_ns:
        return None
    return tuple(
        at if axis.safe is None else AxisMotion(value=axis.safe)
        for axis, at in zip(turn.settings.axes, motion.axes, strict=True)
    )


def rate_limited(turn: Turn, intent: Intent, set_point: SetPoint) -> tuple[str, ...]:
    """Which axes are not yet where they shall go, for the record."""
    return tuple(
        f"{axis.name}: {target:g} -> {set_point.axes[axis.name]:g} (rate)"
        for axis, target in zip(turn.settings.axes, intent.targets, strict=True)
        if target is not None and target != set_point.axes[axis.name]
    )


def measured(turn: Turn, axis: AxisLimits) -> float | None:
    """What the axis does now: by the motor controller's echo, else by its field of the newest observation; in range.

    An echo is the plant of now for as long as a command may be: the link time-out.
    """
    echo, received_ns, value = turn.echo, turn.inputs.link.echo_received_ns, None
    if echo is not None and received_ns is not None and turn.now_ns - received_ns <= turn.settings.link_timeout_ns:
        value = number(echo.axes.get(axis.name))
    if value is None and axis.measured is not None:
        value = number(turn.view.value(axis.measured))
    return None if value is None else min(max(value, axis.low), axis.high)


def _model(turn: Turn) -> Intent | None:
    """Follow the command in force, while it lives."""
    engagement, verdict = turn.engagement, turn.verdict
    if engagement is None or verdict is None:
        return None
    life_ms = _life_ms(turn, engagement.expires_ns)
    if life_ms < 1:
        turn.engagement = None
        turn.events.append(event(turn.now_ns, EventName.LIFE_ENDED, "no successor came in time"))
        return None
    return _follow(verdict, verdict.targets, life_ms=life_ms, grade=Grade.NONE)


def _may_move(turn: Turn) -> bool:
    """A rule moves only on fresh inputs, and only while nothing asks for more than a comfortable stop."""
    return turn.view.fresh and turn.ledger.grade_besides_rules <= Grade.COMFORTABLE


def _rule(turn: Turn, motive: Motive) -> Intent:
    settings, sight = turn.settings, turn.sight
    if motive.targets is None or sight is None:
        return _stop(turn, motive.grade)
    life_ms = _life_ms(turn, sight.observation.captured_ns + settings.life_ns)
    wanted = tuple(
        target if target is not None else (axis.low if axis.safe is None else axis.safe)
        for axis, target in zip(settings.axes, motive.targets, strict=True)
    )
    verdict = admit(settings.axes, wanted, engaged_rails(settings.guardrails, turn.view), clamp=True)
    if life_ms < 1 or verdict.refusal:
        return _stop(turn, motive.grade)
    named = tuple(
        None if target is None else allowed for target, allowed in zip(motive.targets, verdict.targets, strict=True)
    )
    return _follow(verdict, named, life_ms=life_ms, grade=motive.grade)


def _follow(verdict: Verdict, targets: tuple[float | None, ...], *, life_ms: int, grade: Grade) -> Intent:
    return Intent(
        action=Action.MOVE,
        grade=grade,
        targets=targets,
        life_ms=life_ms,
        pulled=verdict.pulled,
        adjusted=verdict.adjusted,
    )


def _stop(turn: Turn, grade: Grade) -> Intent:
    grade = max(grade, turn.ledger.grade)
    return Intent(
        action=turn.settings.actions[grade],
        grade=grade,
        targets=(None,) * len(turn.settings.axes),
        life_ms=turn.settings.link_timeout_ms,
    )


def _life_ms(turn: Turn, expires_ns: int) -> int:
    """What the frame may carry: whole milliseconds, so that rounding never lengthens a life."""
    left_ns = expires_ns - turn.now_ns - turn.settings.wire_ns
    return min(left_ns, turn.settings.link_timeout_ns) // NS_PER_MS


def _stop_axis(turn: Turn, axis: AxisLimits, at: AxisMotion, *, grade: Grade, dt_s: float) -> AxisMotion:
    """An axis that holds keeps its command; the others go to their safe value, from where they are."""
    if axis.safe is None:
        return AxisMotion(value=measured(turn, axis) if at.value is None else at.value)
    value, decel = axis.safe if at.value is None else at.value, at.decel
    if decel is None:
        value, decel = start_of(value, measured(turn, axis), safe=axis.safe), 0.0
    left, decel = brake(abs(value - axis.safe), decel, limit=axis.decel[grade], jerk=axis.jerk[grade], dt_s=dt_s)
    return AxisMotion(value=axis.safe + math.copysign(left, value - axis.safe), decel=decel)


def _follow_axis(
    turn: Turn, axis: AxisLimits, at: AxisMotion, target: float, *, pulled: bool, dt_s: float
) -> AxisMotion:
    """At the model's rates, but what the envelope has pulled back comes back as a stop would."""
    if at.value == target and at.decel is None:
        return at  # it is there
    value = measured(turn, axis) if at.value is None else at.value
    if value is None:
        return AxisMotion(value=target, decel=None)  # nothing to start from: an actuator without a sensor
    if at.decel is not None:
        value = start_of(value, measured(turn, axis), safe=axis.safe)
    down = max(axis.rate_down, axis.decel[Grade.COMFORTABLE]) if pulled else axis.rate_down
    return AxisMotion(value=follow(value, target, safe=axis.safe, up=axis.rate_up, down=down, dt_s=dt_s), decel=None)


def _encoded(axis: AxisLimits, at: AxisMotion) -> float:
    """What the frame carries; a place that nobody knows goes with *hold*, which does not look at it."""
    return as_float32(min(max(0.0, axis.low), axis.high) if at.value is None else at.value)
