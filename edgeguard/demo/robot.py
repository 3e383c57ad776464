"""The robot's own control program in the demo: look, listen, ask the guard, once per period. What a user writes.

The world is integrated from what the motor controller's simulator reports, and from nothing else. Monotonic
nanoseconds; SI units. ``cycle`` raises ``GuardGoneError`` when the guard's process is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgeguard.clock import Clock, ms_from_ns
from edgeguard.demo.operator import Operator, Utterance
from edgeguard.demo.world import World
from edgeguard.link.simulator import Motion, Simulator
from edgeguard.runtime.handle import Guard
from edgeguard.types import CycleRecord, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One period as the robot lived it."""

    record: CycleRecord
    utterance: Utterance
    linear_m_s: float
    angular_rad_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A value and when it was read."""

    value: float
    at_ns: int


class Robot:
    """Three range sensors, two wheels, an operator, and a guard between the model and the wheels."""

    def __init__(self, *, guard: Guard, motors: Simulator, world: World, operator: Operator, clock: Clock) -> None:
        self.guard = guard
        self.motors = motors
        self.world = world
        self.operator = operator
        self.motions: list[Motion] = []
        self._clock = clock
        self._rhythm = guard.periods()
        self._frozen: Reading | None = None

    def cycle(self, *, led: bool = True) -> Cycle:
        """Wait for the period, observe, and return with the guard's decision; not ``led``, the operator is silent."""
        next(self._rhythm)
        self.feel()
        now_ns = self._clock.now_ns()
        linear, angular = self.speed
        if led:
            self.operator.watch(self.world.pose, linear_m_s=linear, angular_rad_s=angular, now_ns=now_ns)
        utterance = self.operator.said
        fields: dict[str, Value] = {
            "said": utterance.text,
            **self.world.ranges(),
            "linear_m_s": linear,
            "angular_rad_s": angular,
        }
        ages_ms: dict[str, float] = {}
        if self._frozen is not None:
            fields["front_m"] = self._frozen.value
            ages_ms["front_m"] = ms_from_ns(now_ns - self._frozen.at_ns)
        record = self.guard.decide(fields, captured_ns=now_ns, field_ages_ms=ages_ms)
        return Cycle(record=record, utterance=utterance, linear_m_s=linear, angular_rad_s=angular)

    def feel(self) -> None:
        """Take what the wheels have reported, and move through the rooms accordingly."""
        for motion in self.motors.motions():
            self.motions.append(motion)
            self.world.move(t_ns=motion.t_ns, linear_m_s=motion.axes["linear"], angular_rad_s=motion.axes["angular"])

    @property
    def speed(self) -> tuple[float, float]:
        """Metres and radians per second, as last reported."""
        axes: Mapping[str, float] = self.motions[-1].axes if self.motions else {"linear": 0.0, "angular": 0.0}
        return axes["linear"], axes["angular"]

    def freeze_front(self) -> None:
        """The sensor in front repeats its last reading from now on; the driver knows how old it is."""
        self._frozen = Reading(value=self.world.ranges()["front_m"], at_ns=self._clock.now_ns())

    def thaw_front(self) -> None:
        self._frozen = None
