"""Drives the guard's core in virtual time, with a worker and a motor controller that do what a test says."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from plant import settings

from edgeguard.clock import NS_PER_MS
from edgeguard.guard.core import step
from edgeguard.guard.interface import Effects, Inputs, Promise, WorkerPhase, WorkerStatus
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.types import (
    Answer,
    BoardState,
    Cause,
    CycleRecord,
    Echo,
    Event,
    Finish,
    LinkStatus,
    Mode,
    Observation,
    OperatorWord,
    Request,
    SetPoint,
)
from edgeguard.types.wire import Feedback, LinkState, MotorFlag

START_NS = 1_000 * NS_PER_MS
FIELDS = {"said": "go on", "front_m": 2.0, "linear": None, "docked": False}
FAST = {"speed": Decimal("0.5"), "turn": "straight", "grip": False}


class Rig:
    """One guard. Every call of ``step`` passes the world as its attributes describe it; tests change them."""

    def __init__(self, plant: Settings | None = None, *, latched: bool = False) -> None:
        self.settings = plant or settings()
        self.now_ns = START_NS
        self.state = GuardState.initial(now_ns=START_NS, latched=latched)
        self.phase = WorkerPhase.READY
        self.bound_ns: int | None = 100 * NS_PER_MS
        self.hotter_ns: tuple[int, ...] = ()  # the bounds of the levels above nominal
        self.lag = 1
        self.observed = True
        self.link = LinkState.UP
        self.generation = 1
        self.echoes = True
        self.feedback = Feedback.ECHO
        self.echo_session = 1
        self.flags = MotorFlag(0)
        self.moving: bool | None = None  # None: as the last set-point says
        self.measured: dict[str, float | None] = {axis.name: 0.0 for axis in self.settings.axes}
        self.follows = True  # the plant does at once what it is told
        self.conditions: tuple[tuple[Cause, str], ...] = ()
        self.offset_ns = 0
        self.request: Request | None = None
        self.restarts = 0  # of the worker, that the guard asked for
        self.sent: list[tuple[int, SetPoint]] = []
        self.records: list[CycleRecord] = []
        self.events: list[Event] = []
        self.effects = Effects()
        self._echo: tuple[Echo, int] | None = None

    # One step.

    def step(
        self,
        *,
        observation: Observation | None = None,
        answers: tuple[Answer, ...] = (),
        operator: tuple[OperatorWord, ...] = (),
        lateness_ns: int = 0,
        board: BoardState | None = None,
    ) -> Effects:
        inputs = Inputs(
            worker=WorkerStatus(phase=self.phase, promise=self._promise()),
            link=self._link_status(),
            observation=observation,
            answers=answers,
            operator=operator,
            conditions=self.conditions,
            boottime_offset_ns=self.offset_ns,
            lateness_ns=lateness_ns,
            board=board,
        )
        self.inputs = inputs
        self.state, effects = step(self.settings, self.state, self.now_ns, inputs)
        self.effects = effects
        self.events += effects.events
        self.request = effects.request or self.request
        self.restarts += effects.restart_worker
        if effects.record is not None:
            self.records.append(effects.record)
        if effects.send is not None:
            self.sent.append((self.now_ns, effects.send))
            if self.follows:
                self.measured = dict(effects.send.axes)
        return effects

    def observe(self, *, age_ms: float = 5, ages_ms: Mapping[str, float] | None = None, **fields: Any) -> Effects:
        """An observation arrives now."""
        content = {**FIELDS, "linear": self.measured["linear"] or 0.0, **fields}
        ages_ns = {name: round(age * NS_PER_MS) for name, age in (ages_ms or {}).items()}
        captured_ns = self.now_ns - round(age_ms * NS_PER_MS)
        return self.step(observation=Observation(fields=content, captured_ns=captured_ns, ages_ns=ages_ns))

    def answer(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        finish: Finish = Finish.COMPLETE,
        request: Request | None = None,
        **changed: Any,
    ) -> Effects:
        """The answer to the newest request (or to ``request``) arrives now."""
        return self.step(answers=(self.make_answer(values, finish=finish, request=request, **changed),))

    def make_answer(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        finish: Finish = Finish.COMPLETE,
        request: Request | None = None,
        **changed: Any,
    ) -> Answer:
        asked = request or self.request
        assert asked is not None
        best = next(iter(self.settings.rung_fields))
        about = {"request_id": asked.request_id, "epoch": asked.epoch, "rung": best, **changed}
        return Answer(finish=finish, values=FAST if values is None else values, **about)

    # Stretches of time.

    def advance(self, ms: float) -> None:
        """Let time pass without anything arriving; the guard is called whenever it asked to be."""
        until_ns = self.now_ns + round(ms * NS_PER_MS)
        while self.effects.wake_ns <= until_ns:
            self.now_ns = max(self.now_ns, self.effects.wake_ns)
            self.step()
        self.now_ns = until_ns

    def cycle(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        latency_ms: float = 100,
        rung: str | None = None,
        **fields: Any,
    ) -> Any:
        """One whole period: an observation, its answer after ``latency_ms``, and the rest; returns the last record."""
        start_ns = self.now_ns
        self.observe(**fields)
        request = self.effects.request
        self.advance(latency_ms)
        if request is not None:
            self.answer(values, request=request, **({} if rung is None else {"rung": rung}))
        self.advance(max(0, start_ns + self.settings.period_ns - self.now_ns) / NS_PER_MS)
        return self.records[-1] if self.records else None

    def arm(self) -> Rig:
        """From the start to armed, with the model's command in force and reached."""
        while self.state.mode is not Mode.ARMED:
            self.cycle()
            assert len(self.records) < 20, self.state.detail
        for _ in range(4):
            self.cycle()
        return self

    # What has happened.

    @property
    def mode(self) -> Mode:
        return self.state.mode

    @property
    def causes(self) -> set[Cause]:
        return set(self.state.ledger)

    @property
    def speeds(self) -> list[float]:
        return [set_point.axes["linear"] for _, set_point in self.sent]

    def named(self, name: str) -> list[str]:
        """The details of the events of one name."""
        return [event.detail for event in self.events if event.name == name]

    def _promise(self) -> Promise | None:
        return (
            None
            if self.bound_ns is None
            else Promise(bounds_ns=(self.bound_ns, *self.hotter_ns), alpha=0.01, lag=self.lag, observed=self.observed)
        )

    def _link_status(self) -> LinkStatus:
        if self.link is not LinkState.UP:
            return LinkStatus(state=self.link, generation=self.generation, problem="unplugged")
        if self.echoes:
            moving = self.feedback is Feedback.ECHO and (
                any(self.measured[axis.name] for axis in self.settings.axes if axis.safe is not None)
                if self.moving is None
                else self.moving
            )
            echo = Echo(
                session=self.echo_session,
                sequence=0,
                flags=self.flags | (MotorFlag.MOVING if moving else MotorFlag(0)),
                life_ms=0,
                axes=self.measured,
                controller_ms=0,
            )
            self._echo = (echo, self.now_ns)
        echo, received_ns = self._echo or (None, None)
        return LinkStatus(
            state=LinkState.UP,
            feedback=self.feedback,
            generation=self.generation,
            session=1,
            echo=echo,
            echo_received_ns=received_ns,
        )
