"""A model's process that hangs before it is ready: really, in a process of its own, under a real guard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, wait_for
from robot import AHEAD, Robot, motors

LIMITS = """[guard]
start_limit_ms = 5000
worker_failures = 1000
"""
"""Of those that start well, a slow machine may have some killed too: it is tried again until one is ready."""


@pytest.fixture
def hanging(tmp_path) -> Iterator[Robot]:
    with motors() as simulator:
        robot = Robot(tmp_path, simulator)
        robot.config.write_text(robot.config.read_text().replace("[guard]\n", LIMITS))
        robot.behave(start="hang")
        yield robot


def test_it_is_killed_when_its_time_is_up_and_another_is_started(hanging):
    events = []

    def replaced() -> bool:
        guard.submit(AHEAD)
        events.extend(guard.events())
        return any(event.name == "worker replaced" for event in events)

    def loading() -> int | None:
        status = guard.status()
        return status.worker_pid if "loading" in status.worker else None

    with hanging.guarded(armed=False) as guard:
        hung = wait_for(loading, "it loads")
        guard.events()  # a slow machine may have begun with the replacement of one that had not yet got so far
        wait_for(replaced, "it is replaced")
        hanging.behave()
        status = guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
        assert not Path(f"/proc/{hung}").exists()
    assert status.counters["worker_starts"] >= 2
    told = [event.detail for event in events if event.name == "cause raised"]
    assert any("worker hung: not ready within guard.start_limit_ms = 5000" in detail for detail in told), events
