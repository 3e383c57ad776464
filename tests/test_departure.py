"""A guard that is told to end: whatever became of its caller, the robot does not go on with the last command."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from plant import settings
from robot import CONFIG, Robot, drive

from edgeguard import Guard
from edgeguard.guard.interface import Refusal
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.runtime.audience import Heard
from edgeguard.runtime.departure import Departure
from edgeguard.types import Cause, Observation, OperatorWord

FORMAT = "v {linear:.3f}\n"
FOR_EVER_MS = 60_000
"""A motor controller without a watchdog goes on with the last line that it has read."""

LINK = f"""
codec = "text"
baud = 230400
accept_best_effort = true
[link.text]
format = {json.dumps(FORMAT)}
"""


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def told(guard: Guard) -> None:
    guard.close()


def terminated(guard: Guard) -> None:
    os.kill(guard.pid, signal.SIGTERM)


def hung_up(guard: Guard) -> None:
    guard._channel.close()


@pytest.mark.parametrize("end", [told, terminated, hung_up])
def test_a_guard_that_ends_stops_the_robot_that_would_not_stop_by_itself(tmp_path: Path, end) -> None:
    axes = [MotorAxis(name="linear", accel=4, decel=4)]
    with Simulator(axes=axes, codec="text", options={"format": FORMAT}, link_timeout_ms=FOR_EVER_MS) as motors:
        robot = Robot(tmp_path, motors)
        robot.config.write_text(CONFIG + LINK)
        with robot.guarded() as guard:
            until(lambda: drive(guard, 1) != [] and motors.where().axes["linear"] > 0.3)
            end(guard)
            guard._process.wait(timeout=60)
            until(lambda: motors.where().axes["linear"] == 0.0)


def test_it_says_why_once_and_shows_the_core_nothing_but_the_operators_words() -> None:
    one, other = (Observation(fields={"front_m": front_m}, captured_ns=1) for front_m in (1.0, 2.0))
    departure = Departure(settings(), cause=Cause.SHUTDOWN, detail="SIGTERM", now_ns=0)
    heard = Heard(observation=other, superseded=(one,), operator=(OperatorWord.STOP,))
    first, second = departure.hear(heard), departure.hear(Heard(observation=other))
    assert first.refusal == Refusal(cause=Cause.SHUTDOWN, detail="SIGTERM")
    assert (first.observation, first.superseded, first.operator) == (None, (one, other), (OperatorWord.STOP,))
    assert (second.refusal, second.observation) == (None, None)
