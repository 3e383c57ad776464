"""What proves standstill, by what the motor controller tells of itself. The one place of this rule.

=========  =============================================================================================
it tells   standstill is
=========  =============================================================================================
an echo    its word that it does not move
measured   every axis within ``REST_SHARE`` of its range from its safe value
nothing    the same, by the axis' ``measured`` field of the newest observation; and where an axis has
           none, stops sent for ``rest_assumed_ns`` (assumed, not seen)
=========  =============================================================================================

An axis that holds is at rest wherever it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgeguard.config import Config
from edgeguard.guard.rules import View, number
from edgeguard.guard.settings import AxisLimits
from edgeguard.types import Echo
from edgeguard.types.wire import Feedback, MotorFlag

REST_SHARE = 0.02
"""A wheel encoder at rest says less; a robot at this share of its range creeps."""


def standstill_shown(axes: Sequence[AxisLimits], feedback: Feedback, echo: Echo | None, view: View) -> bool | None:
    """Whether the plant is seen to stand: ``None`` when that cannot be told, because an axis is not measured."""
    if feedback is Feedback.ECHO:
        return None if echo is None else MotorFlag.MOVING not in echo.flags
    shown: bool | None = True
    for axis in axes:
        if axis.safe is None:
            continue
        value = None if echo is None else echo.axes.get(axis.name)
        if value is None and axis.measured is not None:
            value = number(view.value(axis.measured))
        if value is None:
            shown = None
        elif abs(value - axis.safe) > REST_SHARE * (axis.high - axis.low):
            return False
    return shown


def standstill_proof(config: Config, feedback: Feedback, *, rest_assumed_ms: float) -> str:
    """The rule for this plant, in words."""
    if feedback is Feedback.ECHO:
        return "Standstill is what its echo says."
    blind = [axis.name for axis in config.axes if axis.safe is not None and axis.measured is None]
    if feedback is Feedback.MEASURED or not blind:
        by = "its feedback" if feedback is Feedback.MEASURED else "the observation"
        return f"Standstill is what {by} measures."
    return (
        f"Standstill of {', '.join(blind)} is assumed, not seen, {rest_assumed_ms:.0f} ms after the first stop: give "
        "the axis an observation field as measured, and it is seen."
    )
