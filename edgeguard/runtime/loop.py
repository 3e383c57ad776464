"""Loop mode: the caller owns the wire and calls ``tick`` at least once per tick, and gets the command to send.

edgeguard starts no timer here and touches neither priority, nor memory locking, nor garbage collection. A call that
comes late is the cause ``guard overrun``: a safe decision, its lateness recorded. The model still runs in a process of
its own. Times are monotonic nanoseconds.

    guard = LoopGuard.start("robot.toml", profile="robot.profile.json")
    while True:
        guard.submit({"said": said, "front_m": lidar.front})
        command = guard.tick(measured={"linear": odometry.speed})
        if command is not None:  # else the last one still holds, for its life_ms
            motors.write(command)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from edgeguard.clock import Clock, SystemClock
from edgeguard.config import load_config
from edgeguard.guard.settings import Settings
from edgeguard.runtime.caller_wire import CallerWire
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.parts import Parts
from edgeguard.runtime.stamp import observe
from edgeguard.runtime.status import Status, status_of
from edgeguard.runtime.worker_command import find_model_folders, worker_argv
from edgeguard.types import CycleRecord, Event, Observation, OperatorWord, SetPoint, Value


class LoopGuard:
    """A guard inside the caller's own loop. Made by ``LoopGuard.start``."""

    def __init__(self, *, parts: Parts, clock: Clock) -> None:
        timing = parts.config.timing
        # A caller that keeps its promise calls within a tick of the timer: that is the reserve, unless it states less.
        self._reserve_ns = timing.tick_ns if timing.reserve_ns is None else timing.reserve_ns
        self._parts = parts
        self._clock = clock
        self._wire = CallerWire(parts.config.axes)
        self._driver = Driver(
            settings=Settings.from_config(parts.config, parts.assembly.fields, reserve_ns=self._reserve_ns, wire_ns=0),
            wire=self._wire,
            worker=parts.supervisor,
            board=parts.start_board_watch(now_ns=clock.now_ns()),
            latch=parts.latch,
            recorder=parts.start_recorder(reserve_ns=self._reserve_ns, wire_ns=0),
            clock=clock,
        )
        self._observation: Observation | None = None
        self._operator: list[OperatorWord] = []

    @classmethod
    def start(
        cls,
        config: Path | str,
        *,
        profile: Path | str,
        state_directory: Path | str | None = None,
        worker: Sequence[str] = (),
        clock: Clock | None = None,
    ) -> LoopGuard:
        """Read and check the files and return; the first ``tick`` starts the worker."""
        if not worker:
            loaded = load_config(config)
            worker = worker_argv(loaded.file, Path(profile), models=find_model_folders(loaded))
        parts = Parts(config=config, profile=profile, worker=worker, state_directory=state_directory)
        return cls(parts=parts, clock=clock or SystemClock())

    def submit(
        self,
        fields: Mapping[str, Value],
        *,
        age_ms: float | None = None,
        captured_ns: int | None = None,
        field_ages_ms: Mapping[str, float] | None = None,
    ) -> int:
        """The newest observation, taken by the next ``tick``; its ``captured_ns`` is returned."""
        self._observation = observe(
            fields, now_ns=self._clock.now_ns(), age_ms=age_ms, captured_ns=captured_ns, field_ages_ms=field_ages_ms
        )
        return self._observation.captured_ns

    def tick(self, now_ns: int | None = None, *, measured: Mapping[str, float | None] | None = None) -> SetPoint | None:
        """One step; the command to send now, or ``None`` when there is nothing new to send.

        ``measured`` is what each axis does, in its unit, and ``None`` where there is no reading; a stop starts from it,
        and by it the guard sees that the robot stands, which comes before anything moves. Without any, what was sent
        counts as reached. ``ObservationError`` names what is no axis or no number.
        """
        now_ns = self._clock.now_ns() if now_ns is None else now_ns
        if self._observation is not None:  # submitted behind the caller's look at the clock, it is not of the future
            now_ns = max(now_ns, self._observation.captured_ns)
        if measured is not None:
            self._wire.measure(measured)
        lateness_ns = max(0, now_ns - self._driver.wake_ns)
        self._driver.lateness.note(lateness_ns)
        self._driver.conditions = self._parts.profile.conditions(self._parts.supervisor.ready)
        observation, operator = self._observation, tuple(self._operator)
        self._observation = None
        self._operator.clear()
        self._driver.step(now_ns, lateness_ns=lateness_ns, observation=observation, operator=operator)
        return self._wire.take()

    def stop(self) -> None:
        """The operator's stop, taken by the next ``tick``."""
        self._operator.append(OperatorWord.STOP)

    def rearm(self) -> None:
        """The operator's re-arm, taken by the next ``tick``; refused while a cause holds."""
        self._operator.append(OperatorWord.REARM)

    def poll(self) -> list[CycleRecord]:
        """The records of the cycles that have ended since the last call."""
        return self._driver.take_records()

    def events(self) -> list[Event]:
        """The transitions since the last call."""
        return self._driver.take_events()

    def status(self) -> Status:
        return status_of(self._driver, self._parts, reserve_ns=self._reserve_ns, wire_ns=0)

    def close(self) -> None:
        """End the worker. The last command keeps its life: send a stop of your own if the robot moves."""
        self._parts.close()

    def __enter__(self) -> LoopGuard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
