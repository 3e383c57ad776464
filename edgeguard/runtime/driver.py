"""Carries out what the core decides: the one place where the guard's pure logic meets a link, a worker and a disk.

Both ways to embed are this driver with another wait around it: the guard's own process, and the caller's loop. It reads
time from the clock that it is given, blocks on nothing, and keeps what the caller has not yet collected in bounded
queues: a caller that does not listen loses the oldest records and events, and the guard nothing.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Protocol

from edgeguard.clock import Clock, boottime_offset_ns
from edgeguard.guard.core import step
from edgeguard.guard.interface import Effects, Inputs, WorkerStatus
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.runtime.latch import Latch
from edgeguard.runtime.lateness import Lateness
from edgeguard.types import (
    Answer,
    BoardState,
    Cause,
    CycleRecord,
    Event,
    Finish,
    LinkStatus,
    Observation,
    OperatorWord,
    Request,
    SetPoint,
)

KEPT_RECORDS = 256


class Wire(Protocol):
    """Where set-points go: the serial link, or the caller's own wire."""

    def poll(self, *, now_ns: int) -> LinkStatus: ...

    def transmit(self, set_point: SetPoint, *, now_ns: int) -> int | None:
        """Send; the time that the frame takes on the line, or ``None`` when it could not be sent."""


class Worker(Protocol):
    """What the driver needs of the supervisor."""

    @property
    def status(self) -> WorkerStatus: ...

    def poll(self, now_ns: int) -> list[Answer]: ...

    def ask(self, request: Request) -> bool: ...

    def cancel(self, request_id: int) -> None: ...

    def restart(self, reason: str) -> None: ...

    def retry(self) -> None: ...


class Recorder(Protocol):
    """Where every step is kept, or lost, at once."""

    def note(self, before: GuardState, now_ns: int, inputs: Inputs, effects: Effects) -> None: ...


class Board(Protocol):
    """How hot the board is: a new look, if one has come since the last call."""

    def newest(self, now_ns: int) -> BoardState | None: ...


class Driver:
    """The core with its real parts. ``wake_ns`` is when ``step`` must be called again at the latest."""

    def __init__(
        self,
        *,
        settings: Settings,
        wire: Wire,
        worker: Worker,
        board: Board,
        latch: Latch,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._wire = wire
        self._worker = worker
        self._board = board
        self._latch = latch
        self._recorder = recorder
        self._clock = clock
        now_ns = clock.now_ns()
        self._boottime_origin_ns = self._boottime_offset_ns = clock.boottime_ns() - now_ns
        self.state = GuardState.initial(now_ns=now_ns, latched=latch.latched)
        self.wake_ns = now_ns
        self.lateness = Lateness()
        self.conditions: tuple[tuple[Cause, str], ...] = ()
        self._records: deque[CycleRecord] = deque(maxlen=KEPT_RECORDS)
        self._events: deque[Event] = deque(maxlen=KEPT_RECORDS)
        self.link_status: LinkStatus | None = None
        self.plan = ""  # of the ladder, that the last answer was of

    def step(
        self,
        now_ns: int,
        *,
        lateness_ns: int = 0,
        observation: Observation | None = None,
        operator: tuple[OperatorWord, ...] = (),
    ) -> Effects:
        """One step of the core at ``now_ns``, carried out."""
        answers = tuple(self._worker.poll(now_ns))
        self.link_status = self._wire.poll(now_ns=now_ns)
        conditions = self.conditions
        if self._latch.problem is not None:
            conditions += ((Cause.LATCH_FILE, self._latch.problem),)
        self._boottime_offset_ns = boottime_offset_ns(self._clock, known_ns=self._boottime_offset_ns)
        inputs = Inputs(
            worker=self._worker.status,
            link=self.link_status,
            observation=observation,
            answers=answers,
            operator=operator,
            conditions=conditions,
            boottime_offset_ns=self._boottime_offset_ns - self._boottime_origin_ns,
            lateness_ns=lateness_ns,
            board=self._board.newest(now_ns),
        )
        before = self.state
        self.state, effects = step(self._settings, before, now_ns, inputs)
        if OperatorWord.REARM in operator:
            self._worker.retry()
        carried_out = self._carry_out(effects, now_ns)
        self._recorder.note(before, now_ns, inputs, carried_out)
        return carried_out

    def take_records(self) -> list[CycleRecord]:
        """The records since the last call, oldest first."""
        records = list(self._records)
        self._records.clear()
        return records

    def take_events(self) -> list[Event]:
        """The events since the last call, oldest first."""
        events = list(self._events)
        self._events.clear()
        return events

    def _carry_out(self, effects: Effects, now_ns: int) -> Effects:
        on_wire_ns = None
        if effects.send is not None:
            wire_ns = self._wire.transmit(effects.send, now_ns=now_ns)
            on_wire_ns = None if wire_ns is None else self._clock.now_ns() + wire_ns
        if effects.latch is not None:
            self._latch.set(effects.latch)
        if effects.request is not None:
            self._worker.ask(effects.request)
        if effects.cancel is not None:
            self._worker.cancel(effects.cancel)
        if effects.restart_worker:
            self._worker.restart(self.state.ledger[Cause.WORKER_HUNG].detail)
        if effects.record is not None:
            record = dataclasses.replace(effects.record, on_wire_ns=on_wire_ns)
            self._records.append(record)
            if record.answer is not None and record.answer.finish is Finish.COMPLETE:
                self.plan = record.answer.rung
            effects = dataclasses.replace(effects, record=record)
        self._events.extend(effects.events)
        self.wake_ns = effects.wake_ns
        return effects
