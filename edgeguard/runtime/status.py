"""What a running guard says of itself, for people and programs. Nanoseconds inside; whoever prints converts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeguard.types import Cause, Grade, Mode


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
    session: int | None
    scheduling: str
    memory: str
    reserve_ns: int
    wire_ns: int
    bound_ns: int | None
    prefix_tokens: int | None
    lateness_p99_ns: int = 0
    lateness_max_ns: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
