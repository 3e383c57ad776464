"""What the core remembers from one step to the next. Frozen: a step returns a new one, and any of them can be replayed.

Monotonic nanoseconds. It holds no object of the outside world; nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edgeguard.budget.drift import Drift
from edgeguard.config.condition import Compare
from edgeguard.guard.causes import TABLE
from edgeguard.guard.interface import WorkerPhase
from edgeguard.types import BoardState, Budget, Cause, Decision, Grade, Mode, Observation, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One cause that holds. ``in_a_row`` counts on-time answers since ``raised_ns``, when it was last found to hold."""

    since_ns: int
    raised_ns: int
    detail: str
    grade: Grade
    in_a_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The newest observation that can be used, with the fields of it that cannot."""

    observation: Observation
    arrived_ns: int
    unusable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The newest observation that waits for its release. Only a good one is asked about."""

    observation: Observation
    arrived_ns: int
    good: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """A released observation. It stays open while its request does; without a request it is decided at once.

    ``forecast``: asked although the bound does not fit, so decided at once, and the answer only proves.
    """

    number: int
    observation: Observation | None
    released_ns: int
    budget: Budget | None
    request: Request | None = None
    forecast: bool = False
    decided: Decision | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Engagement:
    """The model's command in force: one target per axis, and when its life ends."""

    targets: tuple[float, ...]
    expires_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisMotion:
    """The last set-point of one axis; ``None`` for one that holds and whose place nobody knows.

    ``decel`` is how fast a stop is slowing it down; ``None`` while it follows a target.
    """

    value: float | None
    decel: float | None = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Where the set-points of all axes stood at ``at_ns``."""

    axes: tuple[AxisMotion, ...]
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Since the start. ``late``, ``foreign``, ``repeated`` and ``unknown`` are answers that were thrown away."""

    cycles: int = 0
    model: int = 0
    safe: int = 0
    misses: int = 0
    trips: int = 0
    late: int = 0
    foreign: int = 0
    repeated: int = 0
    unknown: int = 0
    overruns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardState:
    """Made by ``initial``, then by ``step`` only."""

    now_ns: int
    mode: Mode
    epoch: int
    ledger: Mapping[Cause, Standing]
    credit: float | None = None  # misses that may still come before they are too many; None: all of them
    cycle: Cycle | None = None
    arrival: Arrival | None = None
    sight: Sight | None = None
    engaged_bands: frozenset[Compare] = frozenset()  # hysteresis
    engagement: Engagement | None = None
    motion: Motion | None = None
    rule: str | None = None
    stop_said: str | None = None  # the operator's word in the newest observation
    due_ns: int  # when the next period opens
    last_arrival_ns: int
    absent_due_ns: int  # when the next period without an observation is recorded
    next_request_id: int = 1
    answered_id: int | None = None
    given_up_id: int | None = None  # the newest request that ended without its answer
    silence_ns: int = 0  # how long requests in a row were waited for in vain
    warming_ns: int = 0  # how long the worker has been starting
    worker_phase: WorkerPhase | None = None
    session: tuple[int, int | None] | None = None  # of the link: generation and session
    session_since_ns: int = 0
    at_rest: bool = False  # standstill has been proven in this session, and no echo was missed since
    board: BoardState | None = None  # the newest look at it
    doubt: Drift = field(default_factory=Drift)  # of the bound as calibrated
    drift: Drift = field(default_factory=Drift)  # of the bound with its margin
    boottime_offset_ns: int | None = None
    wake_ns: int
    next_tick_ns: int
    counters: Counters = field(default_factory=Counters)

    @classmethod
    def initial(cls, *, now_ns: int, latched: bool = False) -> GuardState:
        """Nothing is proven. ``latched``: the latch file was there at the start."""
        held = {Cause.UNPROVEN: "just started"}
        if latched:
            held[Cause.LATCH_FILE] = "latched before this start"
        return cls(
            now_ns=now_ns,
            mode=Mode.LATCHED if latched else Mode.INHIBITED,
            epoch=1,
            ledger={
                cause: Standing(since_ns=now_ns, raised_ns=now_ns, detail=detail, grade=TABLE[cause].grade)
                for cause, detail in held.items()
            },
            due_ns=now_ns,
            last_arrival_ns=now_ns,
            absent_due_ns=now_ns,
            wake_ns=now_ns,
            next_tick_ns=now_ns,
        )

    def with_clock_set_back(self, now_ns: int) -> GuardState:
        """The same state on a clock that now shows less: what was timed by the old one is forgotten or dated to now."""
        motion = None if self.motion is None else replace(self.motion, at_ns=now_ns)
        return replace(
            self,
            now_ns=now_ns,
            ledger={
                cause: replace(one, since_ns=min(one.since_ns, now_ns), raised_ns=min(one.raised_ns, now_ns))
                for cause, one in self.ledger.items()
            },
            arrival=None,
            sight=None,
            engagement=None,
            motion=motion,
            session_since_ns=now_ns,
            due_ns=now_ns,
            last_arrival_ns=now_ns,
            absent_due_ns=now_ns,
            wake_ns=now_ns,
            next_tick_ns=now_ns,
        )

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What holds, the worst first; of equals last that nothing is proven, which follows from any other."""
        return tuple(sorted(self.ledger, key=lambda cause: (-self.ledger[cause].grade, cause is Cause.UNPROVEN)))

    @property
    def grade(self) -> Grade:
        return max((standing.grade for standing in self.ledger.values()), default=Grade.NONE)

    @property
    def detail(self) -> str:
        """The worst cause in words; empty when none holds."""
        return next((self.ledger[cause].detail for cause in self.causes), "")
