"""The driver with real parts in this process, and loop mode: the same core with the caller's wire."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from patience import wait_for
from robot import AHEAD, Robot, motors

from edgeguard import LoopGuard
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.errors import ObservationError, ProfileError
from edgeguard.guard.settings import Settings
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.parts import Parts
from edgeguard.runtime.serial_wire import SerialWire
from edgeguard.runtime.stamp import observe
from edgeguard.types import Action, Cause, Mode, SetPoint, Source


@pytest.fixture
def robot(tmp_path) -> Iterator[Robot]:
    with motors() as simulator:
        yield Robot(tmp_path, simulator)


def test_a_thousand_ticks_leave_no_cyclic_garbage(robot):
    parts = Parts(
        config=robot.config, profile=robot.profile, state_directory=robot.folder / "state", worker=robot.worker
    )
    clock = SystemClock()
    wire = SerialWire(parts.config, port=robot.motors.port)
    wire.connect(now_ns=clock.now_ns())
    settings = Settings.from_config(parts.config, parts.assembly.fields, reserve_ns=5 * NS_PER_MS, wire_ns=3_000_000)
    driver = Driver(
        settings=settings,
        wire=wire,
        worker=parts.supervisor,
        board=parts.start_board_watch(now_ns=clock.now_ns()),
        latch=parts.latch,
        recorder=parts.start_recorder(reserve_ns=5 * NS_PER_MS, wire_ns=3_000_000),
        clock=clock,
    )

    def ticks(count: int) -> None:
        for number in range(count):
            now_ns = clock.now_ns()
            driver.step(now_ns, observation=observe(AHEAD, now_ns=now_ns) if number % 6 == 0 else None)
            driver.take_records()
            driver.take_events()
            time.sleep(0.002)

    ticks(500)  # starts the worker, arms, fills every cache
    gc.collect()
    gc.disable()
    try:
        ticks(1_000)
        assert gc.collect() == 0
    finally:
        gc.enable()
        wire.close()
        parts.close()


def test_a_start_that_fails_leaves_the_state_directory_to_the_next(robot):
    profile = robot.profile.read_text()
    robot.profile.write_text("{}")
    where = {"state_directory": robot.folder / "state", "worker": robot.worker}
    with pytest.raises(ProfileError) as failed:
        LoopGuard.start(robot.config, profile=robot.profile, **where)
    robot.profile.write_text(profile)
    LoopGuard.start(robot.config, profile=robot.profile, **where).close()
    assert "format" in str(failed.value)  # and so still holds whatever the failed start had opened


@pytest.fixture
def loop(robot) -> Iterator[LoopGuard]:
    with LoopGuard.start(
        robot.config, profile=robot.profile, state_directory=robot.folder / "state", worker=robot.worker
    ) as guard:
        yield guard


class Loop:
    """A caller's own 100 Hz loop, with a plant that does what it is told at once."""

    def __init__(self, guard: LoopGuard) -> None:
        self.guard = guard
        self.commands: list[SetPoint] = []
        self.speed = 0.0

    def run_until(self, done: Callable[[], bool], **fields) -> None:
        ticks = itertools.count()

        def tick() -> bool:
            if next(ticks) % 6 == 0:
                self.guard.submit({**AHEAD, **fields})
            command = self.guard.tick(measured={"linear": self.speed})
            if command is not None:
                self.commands.append(command)
                self.speed = command.axes["linear"]
            return done()

        wait_for(tick, "what its loop runs for", stands=self.guard.status, pause_s=0.01)

    def run_ticks(self, count: int, **fields) -> None:
        target = len(self.commands) + count
        self.run_until(lambda: len(self.commands) >= target, **fields)


def test_in_loop_mode_the_caller_gets_the_command_to_send(loop):
    mine = Loop(loop)
    mine.run_until(lambda: loop.status().mode is Mode.ARMED)
    assert {command.action for command in mine.commands} == {Action.STOP}
    mine.run_until(lambda: mine.speed == pytest.approx(0.4))
    assert Source.MODEL in {record.decision.source for record in loop.poll()}
    loop.stop()
    mine.run_until(lambda: mine.speed == 0)
    assert loop.status().mode is Mode.LATCHED


def test_a_caller_may_read_the_clock_before_it_submits(loop):
    now_ns = time.monotonic_ns()
    wait_for(lambda: time.monotonic_ns() > now_ns, "the clock ticks")
    loop.submit(AHEAD)
    loop.tick(now_ns, measured={"linear": 0.0})
    assert Cause.BAD_STAMP not in loop.status().causes


def test_what_is_measured_may_be_numpys_and_a_mistake_in_it_is_named(loop):
    mine = Loop(loop)
    mine.run_until(lambda: mine.speed == pytest.approx(0.4))
    loop.tick(measured={"linear": np.float32(0.25)})
    loop.stop()
    stopping = loop.tick(measured={"linear": np.float32(0.25)})
    assert stopping is not None
    assert 0.0 < stopping.axes["linear"] <= 0.25  # from what is measured, not from what was commanded
    with pytest.raises(ObservationError, match=r"'liner' is no \[\[axis\]\]; known: linear"):
        loop.tick(measured={"liner": 0.25})
    with pytest.raises(ObservationError, match="linear = 'fast' is no number"):
        loop.tick(measured={"linear": "fast"})


def test_a_late_call_is_an_overrun_and_a_safe_decision(loop):
    mine = Loop(loop)
    mine.run_until(lambda: loop.status().mode is Mode.ARMED)
    mine.run_ticks(10)
    loop.poll()
    time.sleep(0.1)  # the caller's own loop stalls for ten ticks
    mine.run_ticks(8)
    causes = {cause for record in loop.poll() for cause in record.decision.causes}
    events = " ".join(f"{event.name} {event.detail}" for event in loop.events())
    assert Cause.GUARD_OVERRUN in causes or "overrun" in events
    assert loop.status().counters["overruns"] >= 1
