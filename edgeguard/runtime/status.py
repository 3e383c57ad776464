"""What a running guard says of itself, for people and programs. Nanoseconds inside; whoever prints converts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeguard.guard.forecast import MARGIN, bound_in_force_ns
from edgeguard.plain import to_plain
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.parts import Parts
from edgeguard.types import BoardState, Cause, Grade, LinkStatus, Mode

PATIENCE_S = 5.0
"""A guard that lives is not silent for so long, however busy the machine is; one that has ended is known at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One moment. ``causes`` are those that hold; ``detail`` says the worst one in words."""

    mode: Mode
    grade: Grade
    causes: tuple[Cause, ...]
    detail: str
    epoch: int
    cycles: int
    guard_pid: int
    worker_pid: int | None
    worker: str
    link: str
    recorder: str
    session: int | None
    reserve_ns: int
    wire_ns: int
    bound_ns: int | None  # in force now, with its margin
    margin: float  # of the bound: above 1 while requests exceed the calibrated one too often
    board: str  # its thermal level, or that nobody knows it
    prefix_tokens: int | None
    plan: str = ""  # of the ladder, that the last answer was of
    lateness_p50_ns: int = 0
    lateness_p99_ns: int = 0
    lateness_max_ns: int = 0
    scheduling: str = "the caller's own"
    memory: str = "the caller's own"
    guarantee: str = "the caller's own"
    counters: Mapping[str, int] = field(default_factory=dict)


def status_of(driver: Driver, parts: Parts, *, reserve_ns: int, wire_ns: int) -> Status:
    """The guard that ``driver`` runs, now."""
    state, link, supervisor = driver.state, driver.link_status, parts.supervisor
    counters = state.counters
    return Status(
        mode=state.mode,
        grade=state.grade,
        causes=state.causes,
        detail=state.detail,
        epoch=state.epoch,
        cycles=counters.cycles,
        guard_pid=os.getpid(),
        worker_pid=supervisor.pid,
        worker=f"{supervisor.status.phase.value}: {supervisor.status.detail}",
        link="not yet polled" if link is None else link.problem or link.state.value,
        recorder="not yet started" if parts.recorder is None else parts.recorder.standing,
        session=None if link is None else link.session,
        reserve_ns=reserve_ns,
        wire_ns=wire_ns,
        bound_ns=bound_in_force_ns(
            parts.profile.promise,
            state.board,
            doubt=state.doubt,
            uncalibrated_factor=parts.config.risk.uncalibrated_factor,
        ),
        margin=MARGIN if state.doubt.alarmed else 1.0,
        board=_board(state.board),
        prefix_tokens=supervisor.ready.get("prefix_tokens"),
        plan=driver.plan,
        lateness_p50_ns=driver.lateness.quantile_ns(0.5),
        lateness_p99_ns=driver.lateness.quantile_ns(0.99),
        lateness_max_ns=driver.lateness.max_ns,
        counters={
            **to_plain(counters),
            "worker_starts": supervisor.starts,
            "steps_unrecorded": 0 if parts.recorder is None else parts.recorder.lost,
            **_link_counters(link),
        },
    )


def _board(look: BoardState | None) -> str:
    if look is None:
        return "not yet looked at"
    return f"{look.level.label if look.observed else 'not observed'}: {look.detail}".removesuffix(": ")


def _link_counters(link: LinkStatus | None) -> dict[str, int]:
    if link is None:
        return {}
    return {
        "frames_written": link.written,
        "frames_superseded": link.superseded,
        "frames_corrupt": link.corrupt,
        "frames_foreign": link.foreign,
    }
