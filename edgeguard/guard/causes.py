"""The one table: what each cause is worth, when it clears, and what a person does about it.

What happened is a ``Cause``; what we do about it is its grade, which the plant turns into an action; when it clears is
data. Adding a cause is one row here. The README's table of reason codes is generated from this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from edgeguard.types import Cause, Grade


class Clear(str, Enum):
    """When a cause stops to hold."""

    CONDITION = "when its condition ends"
    OBSERVATION = "with the next good observation"
    ON_TIME = "with the next on-time answer"
    FITTED = "when the bound has fitted N times in a row"
    PROVEN = "after N on-time answers in a row"
    PROVEN_AND_DWELL = "after N on-time answers in a row, and the dwell"
    OPERATOR = "when the operator re-arms"
    RESTART = "with a restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cause. ``drains``: it counts in the accumulator of misses."""

    grade: Grade
    clear: Clear
    remedy: str
    drains: bool = False

    @property
    def latches(self) -> bool:
        """Only the operator ends it, also across a restart."""
        return self.clear is Clear.OPERATOR


def _comfortable(clear: Clear, remedy: str, *, drains: bool = False) -> Row:
    return Row(grade=Grade.COMFORTABLE, clear=clear, remedy=remedy, drains=drains)


def _emergency(clear: Clear, remedy: str) -> Row:
    return Row(grade=Grade.EMERGENCY, clear=clear, remedy=remedy)


def _terminal(clear: Clear, remedy: str) -> Row:
    return Row(grade=Grade.TERMINAL, clear=clear, remedy=remedy)


TABLE: Mapping[Cause, Row] = {
    # The answer.
    Cause.PREDICTED_MISS: _comfortable(
        Clear.FITTED, "the bound does not fit what the observation's age leaves: send it sooner, or give more deadline"
    ),
    Cause.MISS: _comfortable(
        Clear.ON_TIME, "one in 1 / max_miss_rate is expected; more: look for foreign load, then calibrate", drains=True
    ),
    Cause.MISSES_ACCUMULATED: _emergency(
        Clear.PROVEN_AND_DWELL, "too many answers were of no use; were they late, look for load or heat, then calibrate"
    ),
    Cause.INFEASIBLE: _comfortable(
        Clear.FITTED, "the request is longer than was calibrated: shorten the observation's texts"
    ),
    Cause.INVALID_ANSWER: _comfortable(
        Clear.ON_TIME, "the worker broke the schema, which it cannot do by itself: see its log", drains=True
    ),
    Cause.INCOMPLETE_ANSWER: _comfortable(
        Clear.ON_TIME, "the worker gave up or failed: the answer's detail says why", drains=True
    ),
    Cause.OUT_OF_ENVELOPE: _comfortable(
        Clear.ON_TIME, "the model asked for what a range or an interlock forbids: the detail names it", drains=True
    ),
    Cause.LOW_CONFIDENCE: _comfortable(
        Clear.ON_TIME,
        "the model is not sure enough of its answer: say it otherwise, or lower min_confidence",
        drains=True,
    ),
    # The observation.
    Cause.STALE_OBSERVATION: _comfortable(Clear.OBSERVATION, "a sensor or its driver is late: the detail names it"),
    Cause.NO_OBSERVATION: _comfortable(Clear.CONDITION, "the robot's software is silent: is it still running?"),
    Cause.BAD_STAMP: _comfortable(Clear.OBSERVATION, "stamp with this machine's monotonic clock, or give age_ms"),
    Cause.MISSING_FIELD: _comfortable(Clear.OBSERVATION, "a sensor gives no valid reading: the detail names it"),
    # The rules.
    Cause.RULE: _comfortable(Clear.CONDITION, "the plant's own condition: the detail names the rule"),
    # The worker.
    Cause.WORKER_DEAD: _comfortable(Clear.CONDITION, "it is being replaced; its log says why it ended"),
    Cause.WORKER_HUNG: _comfortable(Clear.CONDITION, "it is being replaced; was it stopped, or starved?"),
    Cause.WORKER_WARMING: _comfortable(Clear.CONDITION, "wait: the model is loading"),
    Cause.WORKER_UNAVAILABLE: _comfortable(
        Clear.CONDITION, "it failed too often: mend what the detail or its log names, then re-arm to start it again"
    ),
    Cause.UNPROVEN: _comfortable(Clear.PROVEN, "wait: shadow answers are being timed; send observations"),
    # The forecast.
    Cause.PROFILE_STALE: _comfortable(Clear.CONDITION, "model, board or settings have changed: calibrate"),
    Cause.LEVEL_UNCALIBRATED: _comfortable(Clear.CONDITION, "the board is hotter than it was measured: calibrate hot"),
    Cause.DRIFT_ALARM: _comfortable(
        Clear.CONDITION,
        "requests exceed the bound too often: look for load or heat, else calibrate; it says what ends it",
    ),
    Cause.TEMPERATURE_CRITICAL: _comfortable(Clear.CONDITION, "let the board cool; look at its fan"),
    # The wire and what is behind it.
    Cause.LINK_LOST: _emergency(Clear.CONDITION, "nothing can be sent, the motor controller stops by itself: cable?"),
    Cause.NO_ECHO: _emergency(Clear.CONDITION, "the motor controller is silent, or has not yet come to rest"),
    Cause.SESSION_MISMATCH: _emergency(Clear.CONDITION, "the motor controller wants a new handshake: reconnect it"),
    Cause.CONTROLLER_FAULT: _terminal(Clear.OPERATOR, "mend the motor controller's fault, then re-arm"),
    Cause.CONTROLLER_ESTOP: _terminal(Clear.OPERATOR, "release the e-stop, then re-arm"),
    # The guard itself.
    Cause.CLOCK_JUMP: _emergency(Clear.OPERATOR, "the machine was suspended, or its clock is broken: re-arm"),
    Cause.GUARD_OVERRUN: _comfortable(Clear.ON_TIME, "the guard was not scheduled for a tick: grant it real-time"),
    Cause.OPERATOR_STOP: _emergency(Clear.OPERATOR, "re-arm when the robot may move again"),
    Cause.CONFIGURATION_RELOAD: _comfortable(Clear.RESTART, "the guard is about to restart with another file"),
    Cause.SHUTDOWN: _comfortable(Clear.RESTART, "the guard was told to end, and ends at standstill"),
    Cause.LATCH_FILE: _emergency(Clear.OPERATOR, "latched before this start, or the state directory is unusable"),
}
