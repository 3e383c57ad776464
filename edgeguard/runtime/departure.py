"""How a guard that was told to end leaves: it slows the robot down and goes at standstill.

Not every motor controller stops by itself when the wire falls silent. From the first ``hear`` on neither the model nor
a rule moves the robot. It brakes comfortably, unless something is known that demands more: the core is shown what is
still observed, and hears the operator. The guard never goes before its own set-points are at rest. Then it waits until
the plant is seen to stand, for as long as a stop may take at most. With the link down nothing can be sent, so it goes
at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from edgeguard.clock import NS_PER_S
from edgeguard.config.plant_sections import Axis
from edgeguard.guard.ramp import braking_time
from edgeguard.guard.rules import View
from edgeguard.guard.settings import AxisLimits, Settings
from edgeguard.guard.standstill import standstill_shown
from edgeguard.runtime.audience import Heard
from edgeguard.runtime.driver import Driver
from edgeguard.types import Cause, Grade


class Departure:
    """One guard on its way out. ``cause`` and ``detail`` are why."""

    def __init__(self, settings: Settings, *, cause: Cause, detail: str, now_ns: int) -> None:
        self._settings = settings
        self._conditions = ((cause, detail),)
        self._leave_by_ns = now_ns + stop_limit_ns(
            settings.axes, echo_timeout_ns=settings.echo_timeout_ns, tick_ns=settings.tick_ns
        )

    def hear(self, heard: Heard) -> Heard:
        """What was ``heard``, and why it stops."""
        return replace(heard, conditions=self._conditions)

    def is_over(self, driver: Driver, now_ns: int) -> bool:
        """Asked behind each step of the core."""
        link, state, settings = driver.link_status, driver.state, self._settings
        if link is None or not link.up:
            return True
        resting = state.motion is None or all(
            at.value == axis.safe
            for axis, at in zip(settings.axes, state.motion.axes, strict=True)
            if axis.safe is not None
        )
        if not resting:
            return False
        view = View(now_ns=now_ns, sight=state.sight, timeout_ns=settings.observation_timeout_ns)
        shown = standstill_shown(settings.axes, link.feedback, link.echo, view)
        return shown is True or now_ns >= self._leave_by_ns


def stop_limit_ns(axes: Iterable[Axis | AxisLimits], *, echo_timeout_ns: int, tick_ns: int) -> int:
    """The longest comfortable stop, from the end of an axis' range, and as long again as an echo may take."""
    grade = Grade.COMFORTABLE
    longest_s = max(
        (
            braking_time(
                max(abs(axis.high - axis.safe), abs(axis.low - axis.safe)),
                limit=axis.decel[grade],
                jerk=axis.jerk[grade],
            )
            for axis in axes
            if axis.safe is not None
        ),
        default=0.0,
    )
    return round(longest_s * NS_PER_S) + echo_timeout_ns + 2 * tick_ns
