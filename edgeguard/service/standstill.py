"""Whether the robot stands, and how long a stop may take at most: when a guard that was told to end may leave."""

from __future__ import annotations

from edgeguard.clock import NS_PER_S
from edgeguard.guard.ramp import braking_time
from edgeguard.guard.settings import Settings
from edgeguard.runtime.driver import Driver
from edgeguard.types import Grade
from edgeguard.types.wire import MotorFlag


def stands(driver: Driver, settings: Settings) -> bool:
    """The set-points are at their safe values, and the motor controller says that nothing moves.

    With the link down nothing can be sent: the motor controller stops by itself, whether we are there or not.
    """
    link, motion = driver.link_status, driver.state.motion
    if link is None or not link.up:
        return True
    resting = motion is None or all(
        at.value == axis.safe for axis, at in zip(settings.axes, motion.axes, strict=True) if axis.safe is not None
    )
    return resting and link.echo is not None and MotorFlag.MOVING not in link.echo.flags


def stop_limit_ns(settings: Settings) -> int:
    """The longest comfortable stop, from the end of an axis' range, and as long again as an echo may take."""
    grade = Grade.COMFORTABLE
    longest_s = max(
        (
            braking_time(
                max(abs(axis.high - axis.safe), abs(axis.low - axis.safe)),
                limit=axis.decel[grade],
                jerk=axis.jerk[grade],
            )
            for axis in settings.axes
            if axis.safe is not None
        ),
        default=0.0,
    )
    return round(longest_s * NS_PER_S) + settings.echo_timeout_ns + 2 * settings.tick_ns
