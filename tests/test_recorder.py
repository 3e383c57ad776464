"""The black box of a running guard: what it did is what the same core does again, and no disk reaches the guard."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from robot import AHEAD, Robot, drive, motors, until_recorded

from edgeguard.clock import NS_PER_S
from edgeguard.errors import FlightLogError
from edgeguard.recorder.log import read_flight
from edgeguard.recorder.record import FlightStep
from edgeguard.recorder.replay import replay
from edgeguard.simulation.recorded import recorded_drive
from edgeguard.types import Mode


@pytest.fixture
def robot(tmp_path) -> Iterator[Robot]:
    with motors() as simulator:
        yield Robot(tmp_path, simulator)


def eventful(robot: Robot, guard) -> None:
    """A drive in which the model, a late answer, an obstacle, a cut link and the operator all have their say."""
    drive(guard, 10)
    robot.behave(faults={"*": "late"})
    drive(guard, 3)
    robot.behave()
    guard.wait_armed(timeout_s=20, observe_with=AHEAD)
    drive(guard, 3, front_m=0.2)
    robot.motors.cut()
    drive(guard, 5)
    robot.motors.restore()
    guard.wait_armed(timeout_s=20, observe_with=AHEAD)
    guard.stop()
    drive(guard, 3)


def test_a_drive_replays_to_the_same_decisions(robot):
    with robot.guarded() as guard:
        until_recorded(guard)
        eventful(robot, guard)
        status = guard.status()
    assert status.mode is Mode.LATCHED
    verdict = replay(read_flight(robot.folder / "state" / "flight.log"))
    assert verdict.tally.decisions > 20
    assert not verdict.differences
    gaps = [re.fullmatch(r"steps (\d+) to (\d+) are missing", flaw.detail) for flaw in verdict.tally.flaws]
    assert all(gaps), "nothing is damaged, and nothing is missing but what the guard has said: a busy machine"
    assert sum(int(gap[2]) - int(gap[1]) + 1 for gap in gaps) == status.counters["steps_unrecorded"]


def test_a_recorded_drive_is_told_as_it_was(robot):
    with robot.guarded() as guard:
        until_recorded(guard)
        eventful(robot, guard)
    drive_told = recorded_drive(read_flight(robot.folder / "state" / "flight.log"))
    modes = [span.mode for span in drive_told.timeline.modes]
    assert modes[0] is Mode.INHIBITED
    assert modes[-1] is Mode.LATCHED
    assert {Mode.ARMED, Mode.INTERVENING} <= set(modes)
    assert drive_told.timeline.moves(drive_told.axes[0])
    stretch = recorded_drive(read_flight(robot.folder / "state" / "flight.log"), from_ns=NS_PER_S // 2, to_ns=NS_PER_S)
    assert stretch.timeline.duration_ns == NS_PER_S // 2
    with pytest.raises(FlightLogError, match="no step in the stretch"):
        recorded_drive(read_flight(robot.folder / "state" / "flight.log"), from_ns=10**15)


def decisions_in(log: Path) -> int:
    steps = [entry for entry in read_flight(log) if isinstance(entry, FlightStep)]
    return sum(step.effects.record is not None for step in steps)


def test_what_a_killed_guard_had_recorded_is_readable(robot):
    log = robot.folder / "state" / "flight.log"
    with robot.guarded() as guard:
        until_recorded(guard)
        drive(guard, 10)
        os.kill(guard.pid, signal.SIGKILL)
        give_up = time.monotonic() + 10
        while decisions_in(log) < 10 and time.monotonic() < give_up:  # its recorder may still be writing
            time.sleep(0.05)
    assert decisions_in(log) >= 10


def test_a_disk_that_cannot_be_written_is_not_the_guards_business(robot):
    (robot.folder / "state" / "flight.log").mkdir(parents=True)
    with robot.guarded() as guard:
        assert all(record.on_wire_ns is not None for record in drive(guard, 10))
