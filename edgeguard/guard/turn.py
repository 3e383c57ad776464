"""One step in progress: the state, thawed, and what comes out of it. It lives for one call of ``step``.

The only mutable thing of the core. It knows how a mode follows from the causes and how a cycle is closed; what
happened, and in which order it is looked at, is told in ``edgeguard.guard.core``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from edgeguard.guard.envelope import Verdict
from edgeguard.guard.interface import Inputs, WorkerPhase
from edgeguard.guard.ledger import Ledger
from edgeguard.guard.rules import View
from edgeguard.guard.settings import Settings
from edgeguard.guard.standstill import standstill_shown
from edgeguard.guard.state import AxisMotion, Cycle, GuardState
from edgeguard.types import Answer, Cause, Echo, Event, Grade, Mode, Request, Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A decision before its set-point is known: who proposes, and everything that held at that moment."""

    source: Source
    mode: Mode
    grade: Grade
    causes: tuple[Cause, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A cycle that ends in this step."""

    cycle: Cycle
    epoch: int
    answer: Answer | None
    ruling: Ruling


class Turn:
    """Attributes named like those of ``GuardState`` are its next values."""

    __slots__ = (
        *GuardState.__slots__,
        "before",
        "cancel",
        "closing",
        "echo",
        "events",
        "foretold",
        "inhibit",
        "inputs",
        "latch",
        "renew",
        "request",
        "restart_worker",
        "settings",
        "urgent",
        "verdict",
        "view",
    )

    def __init__(self, settings: Settings, state: GuardState, now_ns: int, inputs: Inputs) -> None:
        self.settings = settings
        self.inputs = inputs
        self.before = state
        self.now_ns = now_ns
        self.events: list[Event] = []
        self.ledger = Ledger(state.ledger, now_ns=now_ns, events=self.events)
        self.mode = state.mode
        self.epoch = state.epoch
        self.credit = settings.miss_limit if state.credit is None else state.credit
        self.cycle = state.cycle
        self.arrival = state.arrival
        self.sight = state.sight
        self.engaged_bands = state.engaged_bands
        self.engagement = state.engagement
        self.motion = state.motion
        self.rule = state.rule
        self.stop_said = state.stop_said
        self.due_ns = state.due_ns
        self.last_arrival_ns = state.last_arrival_ns
        self.absent_due_ns = state.absent_due_ns
        self.next_request_id = state.next_request_id
        self.answered_id = state.answered_id
        self.given_up_id = state.given_up_id
        self.silence_ns = state.silence_ns
        self.warming_ns = state.warming_ns
        self.board = inputs.board or state.board
        self.doubt = state.doubt
        self.drift = state.drift
        self.session = state.session
        self.session_since_ns = state.session_since_ns
        self.at_rest = state.at_rest
        self.next_tick_ns = state.next_tick_ns
        self.counters = state.counters
        self.echo = _fresh_echo(inputs, now_ns, settings.echo_timeout_ns)
        self.view = self.look()
        self.inhibit = False  # back to the start: a new session
        self.renew = False  # what is under way belongs to a worker or a session that is no more
        self.urgent = False  # the set-point cannot wait for the tick
        self.verdict: Verdict | None = None  # the envelope's, on the command in force
        self.closing: Closing | None = None
        self.foretold: Ruling | None = None  # of the open cycle: decided now, closed with its answer
        self.latch: bool | None = None
        self.request: Request | None = None
        self.cancel: int | None = None
        self.restart_worker = False

    # What may be known.

    def look(self) -> View:
        """The newest observation as rules and interlocks may see it now."""
        return View(
            now_ns=self.now_ns,
            sight=self.sight,
            timeout_ns=self.settings.observation_timeout_ns,
            engaged=self.engaged_bands,
        )

    @property
    def suspended_ns(self) -> int:
        """By how much boot time has run ahead of monotonic time since the last step: the machine slept for so long."""
        known_ns = self.before.boottime_offset_ns
        return 0 if known_ns is None else self.inputs.boottime_offset_ns - known_ns

    @property
    def standstill(self) -> bool | None:
        """Whether the plant is seen to stand; ``None``: nobody can tell."""
        return standstill_shown(self.settings.axes, self.inputs.link.feedback, self.echo, self.view)

    @property
    def worker_can_answer(self) -> bool:
        return self.inputs.worker.phase is WorkerPhase.READY and Cause.WORKER_HUNG not in self.ledger

    @property
    def idle(self) -> bool:
        """Standstill and no command in force: then nobody needs an observation."""
        if self.engagement is not None:
            return False
        shown = self.standstill
        if shown is not None:
            return shown
        return self.motion is None or all(
            at.value == axis.safe
            for axis, at in zip(self.settings.axes, self.motion.axes, strict=True)
            if axis.safe is not None
        )

    def forget_held_places(self) -> None:
        """Behind a new session there may be another plant: what holds is measured anew."""
        if self.motion is not None:
            axes = tuple(
                AxisMotion(value=None) if axis.safe is None else at
                for axis, at in zip(self.settings.axes, self.motion.axes, strict=True)
            )
            self.motion = replace(self.motion, axes=axes)

    # How the mode follows from the causes.

    def settle(self) -> None:
        """The mode that the causes ask for; a trip raises the epoch and ends what was under way.

        An answer that was to end a miss knows nothing of what has come since, and may have gone again by the time it is
        there: from then on it only proves.
        """
        mode = self._mode_asked_for()
        tripped = self.mode is Mode.ARMED and mode is not Mode.ARMED
        if mode is not self.mode:
            self.events.append(Event(at_ns=self.now_ns, name=mode.value, detail=self.ledger.detail or "no cause holds"))
            self.urgent = True
            if mode is Mode.LATCHED and self.ledger.latching != (Cause.LATCH_FILE,):
                self.latch = True
            self.mode = mode
        if tripped:
            self.counters = replace(self.counters, trips=self.counters.trips + 1)
        if tripped or self.renew:
            self.epoch += 1
            self.engagement = None
            self.renew = False
            if self.cycle is not None:
                cycle, self.cycle = self.cycle, None
                self.close(cycle, self.ruling(Source.SAFE))
        open_cycle, request = self.cycle, None if self.cycle is None else self.cycle.request
        if open_cycle and request and not request.shadow and not self.ledger.ends_on_time:
            self.cycle = replace(open_cycle, request=replace(request, shadow=True))
        self.inhibit = False

    def _mode_asked_for(self) -> Mode:
        if not self.ledger:
            return Mode.INHIBITED if self.inhibit else Mode.ARMED
        if self.ledger.latching:
            return Mode.LATCHED
        if self.inhibit:
            return Mode.INHIBITED
        return Mode.INTERVENING if self.mode in (Mode.ARMED, Mode.INTERVENING) else Mode.INHIBITED

    # How a cycle ends.

    def ruling(self, source: Source) -> Ruling:
        """What is decided now, on the causes that hold now."""
        return Ruling(
            source=source,
            mode=self.mode,
            grade=self.ledger.grade,
            causes=self.ledger.causes,
            detail=self.ledger.detail
            or ("" if source is Source.MODEL else "a shadow request: it proves, and is not sent"),
        )

    def close(self, cycle: Cycle, ruling: Ruling, *, answer: Answer | None = None) -> None:
        """End ``cycle``, which is open no more. A request without its answer is called off."""
        if cycle.request is not None and answer is None:
            self.given_up_id = self.cancel = cycle.request.request_id
        epoch = self.epoch if cycle.request is None else cycle.request.epoch
        self.closing = Closing(cycle=cycle, epoch=epoch, answer=answer, ruling=ruling)
        self.urgent = True


def _fresh_echo(inputs: Inputs, now_ns: int, timeout_ns: int) -> Echo | None:
    """The motor controller's last echo of this session; ``None`` when it is too old, or there is no session."""
    link = inputs.link
    if not link.up or link.echo is None or link.echo_received_ns is None:
        return None
    return link.echo if now_ns - link.echo_received_ns <= timeout_ns else None
