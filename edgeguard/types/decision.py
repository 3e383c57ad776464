"""What the guard decided, why, and the record that keeps all of it.

The causes are names only: their grade and clear condition are the table in ``edgeguard.guard.causes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

from edgeguard.types.answer import Answer
from edgeguard.types.observation import Observation
from edgeguard.types.wire import Action


class Source(str, Enum):
    """Who proposed the command."""

    MODEL = "model"
    SAFE = "safe"


class Mode(str, Enum):
    """Where the guard stands (run-time assurance)."""

    INHIBITED = "inhibited"  # not yet proven: stops only
    ARMED = "armed"  # the model's commands go out
    INTERVENING = "intervening"  # the rules act
    LATCHED = "latched"  # stops only, until the operator re-arms


class Grade(IntEnum):
    """Severity, ordered; the worst of all causes that hold wins."""

    NONE = 0
    COMFORTABLE = 1
    EMERGENCY = 2
    TERMINAL = 3


class Cause(str, Enum):
    """Why the model's command is not, or not yet, the robot's."""

    PREDICTED_MISS = "predicted miss"
    MISS = "miss"
    MISSES_ACCUMULATED = "misses accumulated"
    INFEASIBLE = "infeasible plan"
    INVALID_ANSWER = "invalid answer"
    INCOMPLETE_ANSWER = "incomplete answer"
    OUT_OF_ENVELOPE = "out of envelope"
    LOW_CONFIDENCE = "low confidence"
    STALE_OBSERVATION = "stale observation"
    NO_OBSERVATION = "no observation"
    BAD_STAMP = "bad time stamp"
    MISSING_FIELD = "missing field"
    RULE = "rule"  # a rule of the configuration took over by its own condition
    WORKER_DEAD = "worker dead"
    WORKER_HUNG = "worker hung"
    WORKER_WARMING = "worker warming"
    WORKER_UNAVAILABLE = "worker unavailable"
    UNPROVEN = "unproven"  # shadow answers still to come
    PROFILE_STALE = "profile stale"
    LEVEL_UNCALIBRATED = "level uncalibrated"
    DRIFT_ALARM = "drift alarm"
    TEMPERATURE_CRITICAL = "temperature critical"
    LINK_LOST = "link lost"
    NO_ECHO = "no echo"
    SESSION_MISMATCH = "session or sequence mismatch"
    CONTROLLER_FAULT = "controller fault"
    CONTROLLER_ESTOP = "controller e-stop"
    CLOCK_JUMP = "clock jump"
    GUARD_OVERRUN = "guard overrun"
    OPERATOR_STOP = "operator stop"
    CONFIGURATION_RELOAD = "configuration reload"
    SHUTDOWN = "shutdown"
    LATCH_FILE = "latch file"


class OperatorWord(str, Enum):
    """What an operator may say to a running guard."""

    STOP = "stop"
    REARM = "rearm"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPoint:
    """Axis values on their way to the wire, after the envelope; ``life_ms`` is what the frame will carry."""

    axes: Mapping[str, float]
    action: Action
    life_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the time from capture to deadline is made of (nanoseconds); ``slack_ns`` is what the bound leaves."""

    deadline_ns: int
    age_ns: int
    wire_ns: int
    reserve_ns: int
    bound_ns: int | None

    @property
    def available_ns(self) -> int:
        """What is left for the model: tokenising, passes, parsing and hand-over."""
        return self.deadline_ns - self.age_ns - self.wire_ns - self.reserve_ns

    @property
    def slack_ns(self) -> int | None:
        return None if self.bound_ns is None else self.available_ns - self.bound_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision per period. ``set_point`` is what the envelope let through; ``adjusted`` says what it changed."""

    source: Source
    mode: Mode
    grade: Grade
    causes: tuple[Cause, ...]
    detail: str
    rule: str | None
    set_point: SetPoint
    decided_ns: int
    adjusted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRecord:
    """Everything about one period: the only source of metrics, plots and reports.

    ``released_ns`` is the arrival of the observation. ``on_wire_ns`` is filled in by whoever sends: the time at which
    the write returned plus the time that the frame's bytes take on the line; ``None`` when nothing could be sent.
    """

    cycle: int
    epoch: int
    mode: Mode
    observation: Observation | None
    released_ns: int
    budget: Budget | None
    answer: Answer | None
    decision: Decision
    shadow: bool
    on_wire_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One transition, with its numbers. ``name`` is stable."""

    at_ns: int
    name: str
    detail: str
