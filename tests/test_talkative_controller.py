"""A motor controller that never stops talking is heard, and does not keep the guard from everything else."""

from __future__ import annotations

import itertools
import os
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
from flights import steps_of
from robot import Robot, motors

from edgeguard.recorder.log import read_flight
from edgeguard.recorder.record import FlightStep
from edgeguard.runtime.process import WIRE_WAKES_PER_TICK


@pytest.fixture
def wire() -> Iterator[tuple[int, str]]:
    """The motor controller's end, and the name of the guard's."""
    far, near = os.openpty()
    tty.setraw(near)
    os.set_blocking(far, False)
    yield far, os.ttyname(near)
    os.close(far)
    os.close(near)


def longest_without_the_timer(steps: list[FlightStep]) -> int:
    """How many steps in a row came before the guard had asked to be called."""
    longest = run = 0
    for before, step in itertools.pairwise(steps):
        whole = step.number == before.number + 1
        run = run + 1 if whole and step.now_ns < before.effects.wake_ns else 0
        longest = max(longest, run)
    return longest


def test_its_bytes_wake_the_guard_a_few_times_a_tick_and_no_more(tmp_path: Path, wire: tuple[int, str]) -> None:
    far_end, port = wire
    with motors() as simulator:
        robot = Robot(tmp_path, simulator)
        robot.behave(start="hang")  # so that nobody else says anything
        with robot.guarded(armed=False, port=port) as guard:
            while "on the disk" not in guard.status().recorder:
                time.sleep(0.1)
            begin_ns = time.monotonic_ns()
            for _ in range(1_000):
                try:
                    os.write(far_end, b"garbage!\0")
                except BlockingIOError:  # it does not read on as quickly as that
                    time.sleep(0.01)
                time.sleep(0.0005)
            end_ns = time.monotonic_ns()
            while guard.status().counters["frames_corrupt"] == 0:
                time.sleep(0.1)
    steps = steps_of(read_flight(tmp_path / "state" / "flight.log"))
    meanwhile = [one for one in steps if begin_ns < one.now_ns < end_ns]
    assert longest_without_the_timer(meanwhile) <= WIRE_WAKES_PER_TICK
