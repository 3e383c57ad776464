"""What goes into one step of the guard's core, and what comes out: the seam between pure logic and real parts.

Whoever drives the core (the guard's own process, the caller's loop, a replay, a simulation) gathers ``Inputs``,
calls ``step`` and carries out the ``Effects``. Nothing here reads a clock or touches a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from edgeguard.types import (
    Answer,
    BoardState,
    Cause,
    CycleRecord,
    Event,
    LinkStatus,
    Observation,
    OperatorWord,
    Request,
    SetPoint,
    ThermalLevel,
)


class WorkerPhase(str, Enum):
    """Where the model's process stands, as its supervisor knows it."""

    WARMING = "warming"  # starting, loading, filling the prefix, warming pass sizes up
    READY = "ready"
    GONE = "gone"  # exited or killed; a new one has not yet been started
    UNAVAILABLE = "unavailable"  # failed too often; the operator's re-arm tries again


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What the calibration promises: a request exceeds the bound of its level with probability ``alpha`` at most.

    ``bounds_ns`` has one bound for each thermal level from nominal up to the harshest that was reached. Every
    ``lag``-th request counts as independent. Where calibration has not ``observed`` the board, its samples are of all
    levels, and count as nominal.
    """

    bounds_ns: tuple[int, ...]
    alpha: float
    lag: int
    observed: bool

    @property
    def reached(self) -> ThermalLevel:
        return ThermalLevel(len(self.bounds_ns) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """``promise`` is ``None`` for a worker that was never calibrated: then nothing is forecast."""

    phase: WorkerPhase
    promise: Promise | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything that has arrived since the last step.

    ``conditions`` are causes that somebody else observes and that hold now (profile stale,
    latch file, …). ``board`` is a new look at it, if there is one. ``boottime_offset_ns`` is boot time minus
    monotonic time.
    """

    worker: WorkerStatus
    link: LinkStatus
    observation: Observation | None = None
    answers: tuple[Answer, ...] = ()
    operator: tuple[OperatorWord, ...] = ()
    conditions: tuple[tuple[Cause, str], ...] = ()
    boottime_offset_ns: int = 0
    lateness_ns: int = 0
    board: BoardState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What the driver must now do, in this order: send, make or remove the latch file, ask, cancel, record."""

    send: SetPoint | None = None
    latch: bool | None = None  # True: make the latch file; False: remove it; None: leave it
    request: Request | None = None
    cancel: int | None = None  # the id of a request whose passes may stop
    restart_worker: bool = False  # it hangs: replace it
    record: CycleRecord | None = None
    events: tuple[Event, ...] = ()
    wake_ns: int = 0  # call again at this time at the latest
