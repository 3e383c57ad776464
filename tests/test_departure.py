"""A guard that is told to end: whatever became of its caller, the robot does not go on with the last command."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from guard_rig import Rig
from plant import settings
from robot import CONFIG, Robot, drive

from edgeguard import Guard
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.runtime.audience import Heard
from edgeguard.runtime.departure import Departure
from edgeguard.types import Cause, Mode, Observation, OperatorWord

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


def interrupted(guard: Guard) -> None:
    os.kill(guard.pid, signal.SIGINT)


def hung_up(guard: Guard) -> None:
    guard._channel.close()


@pytest.mark.parametrize("end", [told, terminated, interrupted, hung_up])
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


def test_it_says_why_and_shows_the_core_what_is_still_heard() -> None:
    seen = Observation(fields={"front_m": 1.0}, captured_ns=1)
    departure = Departure(settings(), cause=Cause.SHUTDOWN, detail="SIGTERM", now_ns=0)
    heard = departure.hear(Heard(observation=seen, operator=(OperatorWord.STOP,)))
    assert heard.conditions == ((Cause.SHUTDOWN, "SIGTERM"),)
    assert (heard.observation, heard.operator) == (seen, (OperatorWord.STOP,))


@pytest.fixture
def leaving() -> Rig:
    """It drives, and is told to end."""
    rig = Rig().arm()
    rig.conditions = ((Cause.SHUTDOWN, "SIGTERM"),)
    rig.step()
    return rig


def test_it_brakes_comfortably_although_nobody_can_judge_the_rules_any_more(leaving: Rig) -> None:
    began = len(leaving.sent) - 1
    leaving.advance(2_000)
    assert leaving.speeds[-1] == 0.0
    assert max(before - after for before, after in itertools.pairwise(leaving.speeds[began:])) < 1.001 * 1.0 * 0.02
    assert leaving.named("rule") == ["stop"]


def test_what_is_known_to_demand_more_brakes_harder_also_when_it_is_seen_no_more(leaving: Rig) -> None:
    leaving.observe(front_m=0.1)
    leaving.advance(2_000)
    assert leaving.named("rule") == ["stop", "obstacle"]
    assert leaving.speeds[-1] == 0.0


def test_no_rule_moves_it_and_the_model_does_not_get_it_back(leaving: Rig) -> None:
    for _ in range(20):
        leaving.cycle(docked=True)
    assert leaving.named("rule") == ["stop"]
    assert set(leaving.speeds[-50:]) == {0.0}
    assert leaving.mode is Mode.INTERVENING
