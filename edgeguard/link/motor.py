"""One simulated axis: a value that follows its goal at limited rates. Seconds and the axis' own unit.

The value is what the axis is commanded in and what its sensor measures: a velocity for a wheel, a place for a gripper
(``holds``). No jerk, no load, no noise: the simulator is a witness of what was obeyed and when, not of dynamics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

COAST_SHARE = 0.25
"""Without torque an axis slows at this share of its deceleration, by friction. Plausible, not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorAxis:
    """What the motor controller knows of an axis. Rates per second. It stops at 0, or, if it ``holds``, where it is."""

    name: str
    accel: float
    decel: float
    holds: bool = False

    def __post_init__(self) -> None:
        for key, rate in (("accel", self.accel), ("decel", self.decel)):
            if not 0 < rate < math.inf:
                raise ValueError(f"axis {self.name!r}: {key} = {rate!r} must be above 0 and finite")


class Motor:
    """The state of one axis. ``position`` is the integral of a velocity, or the value itself; ``travel`` its path."""

    def __init__(self, axis: MotorAxis) -> None:
        self.axis = axis
        self.value = 0.0
        self.position = 0.0
        self.travel = 0.0
        self._goal = 0.0
        self._coasting = False

    @property
    def moving(self) -> bool:
        return self.value != (self._goal if self.axis.holds else 0.0)

    def follow(self, goal: float) -> None:
        """Go to ``goal``: away from 0 at ``accel``, towards 0 at ``decel``."""
        self._goal, self._coasting = goal, False

    def ease(self, goal: float) -> None:
        """Go to ``goal`` as far as that leads towards rest: a stop never speeds up. An axis that holds goes there."""
        self.follow(goal if self.axis.holds else min(max(goal, min(self.value, 0.0)), max(self.value, 0.0)))

    def brake(self) -> None:
        """Come to rest at ``decel``."""
        self.follow(self.value if self.axis.holds else 0.0)

    def coast(self) -> None:
        """Come to rest by friction."""
        self.brake()
        self._coasting = True

    def advance(self, dt_s: float) -> None:
        """Let ``dt_s`` pass; the value changes linearly over it, so keep it short against the motion."""
        before = self.value
        away = abs(self._goal) > abs(before) and self._goal * before >= 0
        rate = self.axis.accel if away else self.axis.decel * (COAST_SHARE if self._coasting else 1.0)
        gap, step = self._goal - before, rate * dt_s
        self.value = self._goal if abs(gap) <= step else before + math.copysign(step, gap)
        moved = self.value - before if self.axis.holds else (before + self.value) / 2 * dt_s
        self.position += moved
        self.travel += abs(moved)
