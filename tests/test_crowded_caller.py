"""A caller with thousands of open files and sockets: what it hands to its children has a number that some calls refuse.

``select.select`` raises for a descriptor above 1,023. So does a guard that is handed one and waits with it.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import wait_for
from robot import AHEAD, Robot, drive, motors

from edgeguard import LoopGuard
from edgeguard.link.sink import Sink
from edgeguard.runtime.status import Status
from edgeguard.types import Source

FIRST_TOO_HIGH = 1_024
ROOM = 200


@pytest.fixture
def robot(tmp_path: Path) -> Iterator[Robot]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FIRST_TOO_HIGH + ROOM:
        pytest.skip(f"at most {hard} descriptors here")
    with motors() as simulator:
        robot = Robot(tmp_path, simulator)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FIRST_TOO_HIGH + ROOM), hard))
        crowd = [os.open(os.devnull, os.O_RDONLY)]
        try:
            while crowd[-1] < FIRST_TOO_HIGH:
                crowd.append(os.dup(crowd[0]))
            yield robot
        finally:
            for one in crowd:
                os.close(one)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_its_guard_guards(robot: Robot) -> None:
    with robot.guarded() as guard:
        while drive(guard, 1)[0].decision.source is not Source.MODEL:
            pass


def test_its_loop_has_a_black_box_and_a_watch_on_the_board(robot: Robot) -> None:
    where = {"state_directory": robot.folder / "state", "worker": robot.worker}
    with LoopGuard.start(robot.config, profile=robot.profile, **where) as guard:

        def look() -> bool:
            guard.submit(AHEAD)
            guard.tick(measured={"linear": 0.0})
            return watched(guard.status())

        wait_for(look, "both are there", stands=guard.status, pause_s=0.01)


def watched(status: Status) -> bool:
    return "on the disk" in status.recorder and status.board != "not yet looked at" and "silent" not in status.board


def test_its_sink_waits(robot: Robot) -> None:
    with Sink(port=robot.folder / "motors", axes=["linear"], apply=lambda *_: None) as sink:
        sink.serve_once(timeout_s=0.0)
