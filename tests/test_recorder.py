"""The black box of a running guard: what it did is what the same core does again, and no disk reaches the guard."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, wait_for
from robot import AHEAD, Robot, drive, drive_until, motors, until_recorded

from edgeguard import Guard
from edgeguard.clock import NS_PER_S
from edgeguard.errors import FlightLogError
from edgeguard.recorder.log import read_flight
from edgeguard.recorder.record import FlightStep
from edgeguard.recorder.replay import replay
from edgeguard.simulation.recorded import recorded_drive
from edgeguard.types import Cause, Mode, Source


@pytest.fixture
def robot(tmp_path) -> Iterator[Robot]:
    with motors() as simulator:
        yield Robot(tmp_path, simulator)


def log_of(robot: Robot) -> Path:
    return robot.folder / "state" / "flight.log"


def modes_in(log: Path) -> list[Mode]:
    return [span.mode for span in recorded_drive(read_flight(log)).timeline.modes]


def decisions_in(log: Path) -> int:
    steps = [entry for entry in read_flight(log) if isinstance(entry, FlightStep)]
    return sum(step.effects.record is not None for step in steps)


def until_logged(guard: Guard, wanted: Callable[[], object], why: str, **fields) -> None:
    """The recorder may be late on a busy machine, and lose steps: what is to be in the log is waited for there."""
    wait_for(lambda: drive(guard, 10, **fields) and wanted(), why, stands=guard.status, pause_s=0)


def eventful(robot: Robot, guard: Guard) -> None:
    """A drive in which the model, a late answer, an obstacle, a cut link and the operator all have their say."""
    log = log_of(robot)
    drive_until(guard, lambda record: record.decision.source is Source.MODEL, "the model drives")
    until_logged(guard, lambda: decisions_in(log) > 20 and Mode.ARMED in modes_in(log), "that is recorded")
    robot.behave(faults={"*": "late"})
    drive_until(guard, lambda record: Cause.MISS in record.decision.causes, "an answer is late")
    robot.behave()
    guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
    until_logged(guard, lambda: Mode.INTERVENING in modes_in(log), "the obstacle is recorded", front_m=0.2)
    robot.motors.cut()
    drive_until(guard, lambda record: Cause.LINK_LOST in record.decision.causes, "the link is cut")
    robot.motors.restore()
    guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
    guard.stop()
    until_logged(guard, lambda: modes_in(log)[-1] is Mode.LATCHED, "the operator's stop is recorded")


def test_a_drive_replays_to_the_same_decisions(robot):
    with robot.guarded() as guard:
        until_recorded(guard)
        eventful(robot, guard)
        status = guard.status()
    assert status.mode is Mode.LATCHED
    verdict = replay(read_flight(log_of(robot)))
    assert verdict.tally.decisions > 20
    assert not verdict.differences
    gaps = [re.fullmatch(r"steps (\d+) to (\d+) are missing", flaw.detail) for flaw in verdict.tally.flaws]
    assert all(gaps), "nothing is damaged, and nothing is missing but what the guard has said: a busy machine"
    assert sum(int(gap[2]) - int(gap[1]) + 1 for gap in gaps) == status.counters["steps_unrecorded"]


def test_a_recorded_drive_is_told_as_it_was(robot):
    with robot.guarded() as guard:
        until_recorded(guard)
        eventful(robot, guard)
    drive_told = recorded_drive(read_flight(log_of(robot)))
    modes = [span.mode for span in drive_told.timeline.modes]
    assert modes[0] is Mode.INHIBITED
    assert modes[-1] is Mode.LATCHED
    assert {Mode.ARMED, Mode.INTERVENING} <= set(modes)
    assert drive_told.timeline.moves(drive_told.axes[0])
    to_ns = drive_told.timeline.duration_ns
    stretch = recorded_drive(read_flight(log_of(robot)), from_ns=to_ns - NS_PER_S // 2, to_ns=to_ns)
    assert stretch.timeline.duration_ns == NS_PER_S // 2
    with pytest.raises(FlightLogError, match="no step in the stretch"):
        recorded_drive(read_flight(log_of(robot)), from_ns=10**15)


def test_what_a_killed_guard_had_recorded_is_readable(robot):
    with robot.guarded() as guard:
        until_recorded(guard)
        until_logged(guard, lambda: decisions_in(log_of(robot)) >= 10, "ten decisions are recorded")
        os.kill(guard.pid, signal.SIGKILL)
    assert decisions_in(log_of(robot)) >= 10


def test_a_disk_that_cannot_be_written_is_not_the_guards_business(robot):
    log_of(robot).mkdir(parents=True)
    with robot.guarded() as guard:
        for record in drive(guard, 10):
            assert record.on_wire_ns is not None or Cause.LINK_LOST in record.decision.causes
