"""How far an axis can travel after the last command that could move it, by each of the ways in which it is stopped.

Distance = speed × (the longest that a command still counts + tick + wire + motor controller's latency) + braking
distance. Three ways: the guard's comfortable and emergency stop, which come after a life at most, and the motor
controller's own when the guard is dead, which comes after the link time-out. Worst case: top speed, and nothing noticed
earlier. Seconds and the axis' unit; only for axes that state a clearance, which makes them speeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from edgeguard.clock import NS_PER_S
from edgeguard.config import Config
from edgeguard.config.plant_sections import Axis
from edgeguard.guard.ramp import braking_distance
from edgeguard.types import Grade

GUARD_DEATH = "the guard is dead"

REST_MARGIN = 1.5
"""By so much a stop that nobody measures may take longer than the configuration says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingDistance:
    """One way to stop one axis from its top speed. ``distance`` is in the axis' unit times seconds."""

    axis: str
    way: str
    reaction_s: float
    distance: float
    clearance: float

    @property
    def fits(self) -> bool:
        return self.distance <= self.clearance


def stopping_distances(config: Config, *, wire_ns: int) -> tuple[StoppingDistance, ...]:
    """For every axis with a clearance, the ways that the configuration describes."""
    return tuple(
        one
        for axis in config.axes
        if axis.clearance is not None and axis.safe is not None
        for one in _ways(config, axis, safe=axis.safe, clearance=axis.clearance, wire_ns=wire_ns)
    )


def stopping_problems(config: Config, *, wire_ns: int) -> list[str]:
    """What keeps the clearances from being kept, in words."""
    problems = []
    for axis in config.axes:
        if axis.clearance is not None and axis.safe is None:
            problems.append(f"axis {axis.name!r}: clearance needs a safe value to come to rest at (safe is 'hold')")
        elif axis.clearance is not None and axis.name not in config.link.controller_decel:
            problems.append(
                f"axis {axis.name!r}: clearance needs link.controller_decel.{axis.name}, the deceleration of the motor "
                "controller's own stop"
            )
    return problems + [
        f"axis {one.axis!r}: {one.way} it stops within {one.distance:.3g}, and its clearance is {one.clearance:g}; "
        "lower max, life_ms or link.timeout_ms, or raise the deceleration"
        for one in stopping_distances(config, wire_ns=wire_ns)
        if not one.fits
    ]


def rest_assumed_ns(config: Config, *, wire_ns: int) -> int:
    """How long stops must have been sent until standstill is assumed, where nobody measures it: from top speed, at the
    motor controller's own deceleration (else the comfortable one), with a margin.
    """
    braking_s = [
        _top_speed(axis, axis.safe) / config.link.controller_decel.get(axis.name, axis.decel[Grade.COMFORTABLE])
        for axis in config.axes
        if axis.safe is not None
    ]
    first_frame_ns = config.link.timeout_ns + wire_ns + config.link.controller_latency_ns
    return first_frame_ns + round(REST_MARGIN * max(braking_s, default=0.0) * NS_PER_S)


def _top_speed(axis: Axis, safe: float) -> float:
    return max(abs(axis.high - safe), abs(axis.low - safe))


def _ways(config: Config, axis: Axis, *, safe: float, clearance: float, wire_ns: int) -> list[StoppingDistance]:
    speed = _top_speed(axis, safe)
    transit_ns = wire_ns + config.link.controller_latency_ns
    guarded_s = (config.timing.life_ns + config.timing.tick_ns + transit_ns) / NS_PER_S
    ways = [
        (f"{grade.name.lower()} stop:", guarded_s, axis.decel[grade], axis.jerk[grade])
        for grade in (Grade.COMFORTABLE, Grade.EMERGENCY)
    ]
    if axis.name in config.link.controller_decel:
        dead_s = (config.link.timeout_ns + transit_ns) / NS_PER_S
        ways.append((f"{GUARD_DEATH}:", dead_s, config.link.controller_decel[axis.name], math.inf))
    return [
        StoppingDistance(
            axis=axis.name,
            way=way,
            reaction_s=reaction_s,
            distance=speed * reaction_s + braking_distance(speed, limit=decel, jerk=jerk),
            clearance=clearance,
        )
        for way, reaction_s, decel, jerk in ways
    ]
