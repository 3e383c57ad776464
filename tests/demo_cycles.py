"""Cycles of the demo as a test wants them: what was decided, when it was on the wire, what was said."""

from __future__ import annotations

from collections.abc import Mapping

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.demo.operator import Utterance, Wish
from edgeguard.demo.robot import Cycle
from edgeguard.types import (
    Action,
    Answer,
    Budget,
    Cause,
    CycleRecord,
    Decision,
    Finish,
    Grade,
    Mode,
    Observation,
    Pass,
    SetPoint,
    Source,
    Value,
)

CAPTURED_NS = NS_PER_S
DEADLINE_MS = 200


def cycle(
    *,
    number: int = 1,
    values: Mapping[str, Value] | None = None,
    causes: tuple[Cause, ...] = (),
    mode: Mode = Mode.ARMED,
    grade: Grade = Grade.NONE,
    linear: float = 0.3,
    angular: float = 0.0,
    decided_ms: float = 70.0,
    on_wire_ms: float | None = 73.0,
    passes: tuple[int, ...] = (20, 4),
    said: str = "drive ahead",
    wish: Wish = Wish.FORWARD,
    rule: str | None = None,
    adjusted: tuple[str, ...] = (),
    observed: bool = True,
) -> Cycle:
    """One cycle; with ``values`` the model decided, without it is a safe one. Milliseconds count from the capture."""
    source = Source.SAFE if values is None else Source.MODEL
    answer = Answer(
        request_id=number,
        epoch=0,
        finish=Finish.COMPLETE,
        values=values,
        passes=tuple(Pass(k=k, p=360, elapsed_ns=2 * k * NS_PER_MS) for k in passes),
    )
    budget = Budget(
        deadline_ns=DEADLINE_MS * NS_PER_MS,
        age_ns=300_000,
        wire_ns=2 * NS_PER_MS,
        reserve_ns=NS_PER_MS,
        bound_ns=110 * NS_PER_MS,
    )
    record = CycleRecord(
        cycle=number,
        epoch=0,
        mode=mode,
        observation=Observation(fields={"said": said}, captured_ns=CAPTURED_NS) if observed else None,
        released_ns=CAPTURED_NS,
        budget=budget if observed else None,
        answer=None if values is None else answer,
        decision=Decision(
            source=source,
            mode=mode,
            grade=grade,
            causes=causes,
            detail="",
            rule=rule,
            set_point=SetPoint(
                axes={"linear": linear, "angular": angular},
                action=Action.MOVE if values is not None else Action.STOP,
                life_ms=80,
            ),
            decided_ns=at_ns(decided_ms),
            adjusted=adjusted,
        ),
        shadow=False,
        on_wire_ns=None if on_wire_ms is None else at_ns(on_wire_ms),
    )
    return Cycle(record=record, utterance=Utterance(text=said, wish=wish), linear_m_s=linear, angular_rad_s=angular)


def at_ns(after_ms: float) -> int:
    """Monotonic time so long after the capture."""
    return CAPTURED_NS + round(after_ms * NS_PER_MS)
