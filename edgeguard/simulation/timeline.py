"""What came of a run, simulated or recorded, over its time: motion, modes, causes, decisions, events.

Nanoseconds from the start; axis values in their units. Data for people, plots and checks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeguard.config.plant_sections import Axis
from edgeguard.guard.interface import Effects
from edgeguard.guard.state import Counters, GuardState
from edgeguard.types import Cause, CycleRecord, Event, Finish, Grade, Mode, SetPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What every axis did at one time."""

    at_ns: int
    measured: Mapping[str, float]


@dataclass(slots=True, kw_only=True)
class Span:
    """A stretch of time in which something held."""

    begin_ns: int
    end_ns: int

    def covers(self, at_ns: int) -> bool:
        return self.begin_ns <= at_ns < self.end_ns


@dataclass(slots=True, kw_only=True)
class ModeSpan(Span):
    mode: Mode


@dataclass(slots=True, kw_only=True)
class CauseSpan(Span):
    cause: Cause
    grade: Grade


@dataclass(slots=True, kw_only=True)
class PlanSpan(Span):
    """Decisions in a row whose answers were of one plan of the ladder."""

    plan: str


@dataclass(slots=True, kw_only=True)
class Timeline:
    """One run. Spans that still last at the end end with it. ``ladder`` names the plans, the best first, if any."""

    duration_ns: int
    ladder: tuple[str, ...] = ()
    moments: list[Moment] = field(default_factory=list)
    modes: list[ModeSpan] = field(default_factory=list)
    causes: list[CauseSpan] = field(default_factory=list)
    sent: list[tuple[int, SetPoint]] = field(default_factory=list)
    decisions: list[tuple[int, CycleRecord]] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)
    script: list[tuple[int, str]] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    steps: int = 0
    worker_starts: int = 0

    def note_step(self, at_ns: int, state: GuardState, effects: Effects) -> None:
        """The core has made a step."""
        self.steps += 1
        self.counters = state.counters
        if effects.send is not None:
            self.sent.append((at_ns, effects.send))
        if effects.record is not None:
            self.decisions.append((at_ns, effects.record))
        self.events += [(at_ns, one) for one in effects.events]
        if not self.modes or self.modes[-1].mode is not state.mode:
            if self.modes:
                self.modes[-1].end_ns = at_ns
            self.modes.append(ModeSpan(begin_ns=at_ns, end_ns=self.duration_ns, mode=state.mode))
        self._note_causes(at_ns, state)

    def moves(self, axis: Axis) -> bool:
        """Whether this axis did anything to speak of."""
        values = [value for moment in self.moments if math.isfinite(value := moment.measured[axis.name])]
        return bool(values) and max(values) - min(values) > (axis.high - axis.low) / 100

    @property
    def plans(self) -> list[PlanSpan]:
        """Which plan answered, from decision to decision; nothing where none did."""
        spans: list[PlanSpan] = []
        ends_ns = [at_ns for at_ns, _ in self.decisions[1:]] + [self.duration_ns]
        for (at_ns, record), end_ns in zip(self.decisions, ends_ns, strict=True):
            answer = record.answer
            if answer is None or answer.finish is not Finish.COMPLETE or answer.rung not in self.ladder:
                continue
            if spans and spans[-1].plan == answer.rung and spans[-1].end_ns == at_ns:
                spans[-1].end_ns = end_ns
            else:
                spans.append(PlanSpan(begin_ns=at_ns, end_ns=end_ns, plan=answer.rung))
        return spans

    def plan_at(self, at_ns: int) -> str | None:
        return next((span.plan for span in self.plans if span.covers(at_ns)), None)

    def mode_at(self, at_ns: int) -> Mode | None:
        return next((span.mode for span in self.modes if span.covers(at_ns)), None)

    def causes_at(self, at_ns: int) -> frozenset[Cause]:
        return frozenset(span.cause for span in self.causes if span.covers(at_ns))

    def moment_at(self, at_ns: int) -> Moment:
        """The last one up to ``at_ns``."""
        return next((one for one in reversed(self.moments) if one.at_ns <= at_ns), self.moments[0])

    @property
    def causes_once_armed(self) -> frozenset[Cause]:
        """What arose after the guard was first armed: what held at the start is left out."""
        armed_ns = next((span.begin_ns for span in self.modes if span.mode is Mode.ARMED), self.duration_ns)
        return frozenset(span.cause for span in self.causes if span.begin_ns >= armed_ns)

    def _note_causes(self, at_ns: int, state: GuardState) -> None:
        standing = {(cause, one.grade) for cause, one in state.ledger.items()}
        for span in self.causes:
            if span.end_ns == self.duration_ns and (span.cause, span.grade) not in standing:
                span.end_ns = at_ns
        lasting = {(span.cause, span.grade) for span in self.causes if span.end_ns == self.duration_ns}
        self.causes += [
            CauseSpan(begin_ns=at_ns, end_ns=self.duration_ns, cause=cause, grade=grade)
            for cause, grade in sorted(standing - lasting, key=lambda one: list(Cause).index(one[0]))
        ]
