"""The drive itself: period after period, quiet or troubled, and what became of each fault.

Knows the robot and its guard from outside, as a user would: through the handle, and through what the motor controller
reports. Every cycle is handed to ``seen`` as it is lived. Monotonic nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from edgeguard.clock import NS_PER_MS, NS_PER_S, Clock
from edgeguard.demo.aftermath import STANDING_M_S, aftermath
from edgeguard.demo.faults import Fault, Scene
from edgeguard.demo.robot import Cycle, Robot
from edgeguard.demo.summary import Outcome
from edgeguard.demo.timeline import decisive
from edgeguard.errors import WorkerError
from edgeguard.runtime.status import Status
from edgeguard.types import Mode, Source

ARMING_LIMIT_NS = 120 * NS_PER_S
DRIVING_LIMIT_NS = 20 * NS_PER_S
STANDING_LIMIT_NS = 5 * NS_PER_S
RECOVERY_LIMIT_NS = 60 * NS_PER_S
"""A worker that had to be replaced loads its model again, on a slow board from a slow card."""

FATAL_WATCH_NS = 2 * NS_PER_S
DRIVING_M_S = 0.25
ROOM_AHEAD_M = 1.2
"""A fault is worth seeing while the robot drives, and has room to stop."""


class Drive:
    """One robot under one guard. ``seen`` is called with every cycle."""

    def __init__(self, *, robot: Robot, scene: Scene, clock: Clock, seen: Callable[[Cycle], None]) -> None:
        self._robot = robot
        self._scene = scene
        self._clock = clock
        self._seen = seen

    def wait_armed(self) -> Status:
        """Stand still until the guard lets the model drive; ``WorkerError`` with its reason if it does not."""
        give_up_ns = self._clock.now_ns() + ARMING_LIMIT_NS
        while True:
            self._robot.cycle(led=False)
            status = self._robot.guard.status()
            if status.mode is Mode.ARMED:
                return status
            if self._clock.now_ns() > give_up_ns:
                raise WorkerError(f"the guard is not armed: {status.detail} (worker: {status.worker})")

    def quiet(self, cycles: int) -> list[Cycle]:
        """So many periods without a fault."""
        return [self._cycle() for _ in range(cycles)]

    def until_driving(self) -> list[Cycle]:
        """Until the model drives, fast enough and with room ahead, or the patience is over."""
        cycles: list[Cycle] = []
        give_up_ns = self._clock.now_ns() + DRIVING_LIMIT_NS
        while self._clock.now_ns() < give_up_ns:
            cycles.append(self._cycle())
            decision, (speed, _) = cycles[-1].record.decision, self._robot.speed
            drives = decision.source is Source.MODEL and min(decision.set_point.axes["linear"], speed) >= DRIVING_M_S
            if drives and self._robot.world.ranges()["front_m"] >= ROOM_AHEAD_M:
                break
        return cycles

    def suffer(self, fault: Fault) -> tuple[Outcome, list[Cycle]]:
        """Let the fault happen, end it once the robot stands, and wait until the model drives again."""
        since_ns, late_before = self._clock.now_ns(), self._late_answers()
        fault.begin(self._scene)
        if fault.fatal:
            self._watch(FATAL_WATCH_NS)
            return self._outcome(fault, since_ns=since_ns), []
        cycles: list[Cycle] = []
        ended, intervened, recovered_ns = fault.end is None, False, None
        while recovered_ns is None and self._clock.now_ns() < since_ns + RECOVERY_LIMIT_NS:
            cycles.append(self._cycle())
            now_ns, source = self._clock.now_ns(), cycles[-1].record.decision.source
            intervened = intervened or source is Source.SAFE
            over = now_ns > since_ns + STANDING_LIMIT_NS
            if not ended and fault.end is not None and (over or (intervened and self._stands)):
                fault.end(self._scene)
                ended = True
            elif ended and source is Source.MODEL and (over or intervened):
                recovered_ns = now_ns
        why = list(_causes(cycles))
        if self._late_answers() > late_before:
            why.append("the late answer was thrown away")
        return self._outcome(fault, since_ns=since_ns, recovered_ns=recovered_ns, why=", ".join(why)), cycles

    @property
    def _stands(self) -> bool:
        return abs(self._robot.speed[0]) < STANDING_M_S

    def _late_answers(self) -> int:
        return self._robot.guard.status().counters["late"]

    def _cycle(self) -> Cycle:
        cycle = self._robot.cycle()
        self._seen(cycle)
        return cycle

    def _watch(self, for_ns: int) -> None:
        """Only look on."""
        until_ns = self._clock.now_ns() + for_ns
        while self._clock.now_ns() < until_ns:
            self._clock.sleep_until_ns(self._clock.now_ns() + 20 * NS_PER_MS)
            self._robot.feel()

    def _outcome(self, fault: Fault, *, since_ns: int, recovered_ns: int | None = None, why: str = "") -> Outcome:
        self._robot.feel()
        stops = self._robot.motors.report(since_ns=since_ns).stops
        after = aftermath(self._robot.motions, since_ns=since_ns, until_ns=recovered_ns, stops=stops)
        return Outcome(
            name=fault.name,
            stopped_ms=None if after.stopped_ms is None else round(after.stopped_ms, 1),
            distance_m=round(after.distance_m, 3),
            slowest_m_s=round(after.slowest_m_s, 3),
            stopped_by=after.stopped_by,
            why=why,
            recovered_s=None if recovered_ns is None else round((recovered_ns - since_ns) / NS_PER_S, 1),
            fatal=fault.fatal,
        )


def _causes(cycles: Iterable[Cycle]) -> Iterable[str]:
    """What was decisive in the safe decisions, in the order in which it first was."""
    causes = (decisive(cycle.record.decision) for cycle in cycles if cycle.record.decision.source is Source.SAFE)
    return dict.fromkeys(cause.value for cause in causes if cause is not None)
