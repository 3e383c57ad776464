"""The black box of a running guard: what it did is what the same core does again, and no disk reaches the guard."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from robot import AHEAD, Robot, drive, motors

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
        eventful(robot, guard)
        assert guard.status().mode is Mode.LATCHED
        assert guard.status().counters["steps_unrecorded"] == 0
    verdict = replay(read_flight(robot.folder / "state" / "flight.log"))
    assert verdict.tally.decisions > 20
    assert not verdict.differences
    assert not verdict.tally.flaws


def test_a_recorded_drive_is_told_as_it_was(robot):
    with robot.guarded() as guard:
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


def test_what_a_killed_guard_had_recorded_is_readable(robot):
    with robot.guarded() as guard:
        drive(guard, 10)
        os.kill(guard.pid, signal.SIGKILL)
        time.sleep(0.5)
    steps = [entry for entry in read_flight(robot.folder / "state" / "flight.log") if isinstance(entry, FlightStep)]
    assert sum(step.effects.record is not None for step in steps) >= 10


def test_a_disk_that_cannot_be_written_is_not_the_guards_business(robot):
    (robot.folder / "state" / "flight.log").mkdir(parents=True)
    with robot.guarded() as guard:
        assert all(record.on_wire_ns is not None for record in drive(guard, 10))
