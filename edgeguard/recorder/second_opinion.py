"""What another configuration would have decided on a recorded flight: the same world, another core.

The world is taken as it was recorded: it does not react to the other decisions, and the worker does not answer what it
was not asked. An answer belongs to the request that was made on the same observation. The core is called at every
recorded step, and in between whenever it asks to be. The other configuration must describe the same axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.config import Config
from edgeguard.errors import ConfigError
from edgeguard.guard.core import step
from edgeguard.guard.interface import Inputs
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.recorder.log import Flaw, FlightEntry
from edgeguard.recorder.record import FlightStep
from edgeguard.recorder.replay import Tally
from edgeguard.types import Answer, Cause, CycleRecord, Request

_SLACK_NS = NS_PER_MS
"""A recorded step that comes so little after the core's timer is that timer's own."""

_PATIENCE_NS = NS_PER_S
"""How long one of two decisions on an observation waits for the other, besides a deadline."""

_KEPT_REQUESTS = 64

_Key = tuple[bool, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """One observation, decided otherwise. ``None``: it was, or would have been, not decided at all.

    ``unanswered``: it would have been asked about, and the recording has no answer to that.
    """

    at_ns: int
    then: CycleRecord | None
    now: CycleRecord | None
    unanswered: bool = False


@dataclass(slots=True, kw_only=True)
class SecondOpinion:
    """``agreed`` decisions are the same; ``moved`` of them lead to another set-point on the way."""

    tally: Tally = field(default_factory=Tally)
    agreed: int = 0
    moved: int = 0
    divergences: list[Divergence] = field(default_factory=list)


def second_opinion(entries: Iterable[FlightEntry], config: Config) -> SecondOpinion:
    """Run the other core over the recording; ``ConfigError`` when it cannot be compared."""
    opinion = SecondOpinion()
    settings: Settings | None = None
    other: _Other | None = None
    pairs = _Pairs(opinion, patience_ns=_PATIENCE_NS)
    for entry in entries:
        if isinstance(entry, FlightStep):
            if other is None and settings is not None and entry.before is not None:
                other = _Other(settings, entry.before)
            if other is None:
                opinion.tally.skipped += 1
                continue
            opinion.tally.count(entry, after_ns=other.last_ns)
            pairs.take(entry.effects.record, other.step(entry), other=other, now_ns=entry.now_ns)
            continue
        other = None
        pairs = _Pairs(opinion, patience_ns=pairs.patience_ns)  # what has no other half will get none
        if isinstance(entry, Flaw):
            opinion.tally.flaws.append(entry)
        else:
            opinion.tally.begin()
            settings, recorded = entry.settings(config), entry.settings()
            _check_axes(recorded, settings, config)
            pairs.patience_ns = _PATIENCE_NS + max(recorded.deadline_ns, settings.deadline_ns)
    return opinion


def _check_axes(recorded: Settings, settings: Settings, config: Config) -> None:
    then, given = ([axis.name for axis in one.axes] for one in (recorded, settings))
    if then != given:
        raise ConfigError(
            f"{config.file}: axis: {', '.join(given)}; the recorded robot has {', '.join(then)}, in this order: "
            "give a configuration of the same robot"
        )


class _Other:
    """The other core, from the state in which the recorded one was."""

    def __init__(self, settings: Settings, state: GuardState) -> None:
        self._settings = settings
        self._state = state
        self._quiet: Inputs | None = None  # the world between two recorded steps
        self._asked_then: dict[int, Request] = {}  # by request id
        self._asked_now: dict[int, Request] = {}  # by time of capture
        if state.cycle is not None and state.cycle.request is not None:
            request = state.cycle.request
            self._asked_then[request.request_id] = self._asked_now[request.observation.captured_ns] = request

    @property
    def last_ns(self) -> int:
        return self._state.now_ns

    def step(self, recorded: FlightStep) -> list[CycleRecord]:
        """What is decided up to the recorded step, and in it."""
        inputs = recorded.inputs
        records = []
        until_ns = recorded.now_ns - inputs.lateness_ns - _SLACK_NS
        while self._quiet is not None and self._state.wake_ns < until_ns:
            records += self._run(self._state.wake_ns, self._quiet)
        if recorded.effects.request is not None:
            _remember(self._asked_then, recorded.effects.request.request_id, recorded.effects.request)
        answers = tuple(answer for one in inputs.answers if (answer := self._readdressed(one)) is not None)
        records += self._run(recorded.now_ns, replace(inputs, answers=answers))
        self._quiet = replace(inputs, observation=None, answers=(), operator=(), lateness_ns=0)
        return records

    def was_asked(self, captured_ns: int) -> bool:
        """Whether the recorded guard had asked about this observation."""
        return any(request.observation.captured_ns == captured_ns for request in self._asked_then.values())

    def _run(self, now_ns: int, inputs: Inputs) -> list[CycleRecord]:
        self._state, effects = step(self._settings, self._state, now_ns, inputs)
        if effects.request is not None:
            _remember(self._asked_now, effects.request.observation.captured_ns, effects.request)
        return [] if effects.record is None else [effects.record]

    def _readdressed(self, answer: Answer) -> Answer | None:
        """The recorded answer as one to this core's request; ``None`` when it would not have asked."""
        then = self._asked_then.get(answer.request_id)
        now = None if then is None else self._asked_now.get(then.observation.captured_ns)
        if then is None or now is None:
            return None
        epoch = now.epoch if answer.epoch == then.epoch else answer.epoch
        return replace(answer, request_id=now.request_id, epoch=epoch)


def _remember(asked: dict[int, Request], key: int, request: Request) -> None:
    asked[key] = request
    if len(asked) > _KEPT_REQUESTS:
        del asked[next(iter(asked))]


class _Pairs:
    """Finds the two decisions on each observation, and compares them."""

    def __init__(self, opinion: SecondOpinion, *, patience_ns: int) -> None:
        self.patience_ns = patience_ns
        self._opinion = opinion
        self._then: dict[_Key, CycleRecord] = {}
        self._now: dict[_Key, CycleRecord] = {}

    def take(self, then: CycleRecord | None, now: list[CycleRecord], *, other: _Other, now_ns: int) -> None:
        """The decisions of one step. One that has waited too long for its other half is told alone."""
        if then is not None:
            self._then[_key(then)] = then
        self._now.update((_key(record), record) for record in now)
        for key in [key for key in self._then if key in self._now]:
            self._compare(self._then.pop(key), self._now.pop(key), other)
        for waiting in (self._then, self._now):
            for key in [key for key, one in waiting.items() if one.decision.decided_ns < now_ns - self.patience_ns]:
                alone = waiting.pop(key)
                if waiting is self._then:
                    self._diverge(alone, then=alone, now=None, other=other)
                else:
                    self._diverge(alone, then=None, now=alone, other=other)

    def _compare(self, then: CycleRecord, now: CycleRecord, other: _Other) -> None:
        if _ruling(then) != _ruling(now):
            self._diverge(then, then=then, now=now, other=other)
            return
        self._opinion.agreed += 1
        self._opinion.moved += then.decision.set_point.axes != now.decision.set_point.axes

    def _diverge(self, at: CycleRecord, *, then: CycleRecord | None, now: CycleRecord | None, other: _Other) -> None:
        missed = now is not None and now.answer is None and Cause.MISS in now.decision.causes
        unanswered = missed and at.observation is not None and not other.was_asked(at.observation.captured_ns)
        self._opinion.divergences.append(
            Divergence(
                at_ns=self._opinion.tally.since_start_ns(at.decision.decided_ns),
                then=then,
                now=now,
                unanswered=unanswered,
            )
        )


def _key(record: CycleRecord) -> _Key:
    """What a decision is about: an observation with a good stamp, or whatever was there at that time."""
    if record.observation is not None and record.observation.captured_ns > 0:
        return True, record.observation.captured_ns
    return False, record.released_ns


def _ruling(record: CycleRecord) -> tuple[object, ...]:
    """What makes two decisions the same; on the way to the same set-point they may stand elsewhere."""
    decision = record.decision
    causes = tuple(sorted(decision.causes))
    return decision.source, decision.mode, decision.grade, causes, decision.rule, decision.set_point.action
