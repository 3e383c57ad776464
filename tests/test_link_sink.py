"""A motor controller made of a function: the same vectors as the C header, and a whole guard in front of it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

import cobs_vectors
import pytest
from patience import wait_for
from robot import Robot, drive_until

from edgeguard.link.receiver import Receiver
from edgeguard.link.sink import Sink
from edgeguard.types import Action
from edgeguard.types.wire import MotorFlag

PLAIN, KEYED = cobs_vectors.load(), cobs_vectors.load("cobs-keyed.json")
VECTORS = pytest.mark.parametrize("vectors", [PLAIN, KEYED], ids=["plain", "keyed"])


class Motors:
    """Ideal ones, as those of the vectors: they do at once what they are asked for, and say nothing before."""

    def __init__(self, vectors: cobs_vectors.Vectors, *, link_timeout_ms: int | None = None) -> None:
        self.done: list[tuple[Action, Mapping[str, float] | None]] = []
        self.receiver = Receiver(
            axes=vectors.axes,
            apply=self._apply,
            draw_session=iter(range(vectors.session, vectors.session + 100)).__next__,
            link_timeout_ms=link_timeout_ms or vectors.link_timeout_ms,
            key=vectors.key,
        )

    def _apply(self, action: Action, axes: Mapping[str, float] | None) -> None:
        self.done.append((action, axes))
        known = any(value is not None for value in self.receiver.measured.values())
        if axes is not None or known:
            self.receiver.measured = axes or dict.fromkeys(self.receiver.measured, 0.0)
        moving = any(self.receiver.measured.values())
        self.receiver.flags = self.receiver.flags & ~MotorFlag.MOVING | (MotorFlag.MOVING if moving else MotorFlag(0))


@VECTORS
def test_it_drops_what_is_published_to_be_dropped(vectors: cobs_vectors.Vectors) -> None:
    for why, line in vectors.dropped.items():
        motors = Motors(vectors)
        assert motors.receiver.receive(vectors.conversation[0].hears.line, now_ms=1)
        assert motors.receiver.receive(line, now_ms=2) == b"", why
        assert motors.done == []


@VECTORS
def test_it_speaks_the_published_conversation(vectors: cobs_vectors.Vectors) -> None:
    motors = Motors(vectors)
    for one in vectors.conversation:
        motors.receiver.flags = motors.receiver.flags & MotorFlag.MOVING | one.status
        motors.receiver.tick(one.ms)
        assert motors.receiver.receive(one.hears.line, now_ms=one.ms) == one.says.line


def test_a_life_that_ends_is_a_hold_and_a_torque_that_is_off_stays_off() -> None:
    motors = Motors(PLAIN)
    hello, *_, move, _stop, torque_off = (one.hears.line for one in PLAIN.conversation)
    motors.receiver.receive(hello, now_ms=0)
    motors.receiver.receive(move, now_ms=10)
    assert motors.receiver.until_ms == 90
    motors.receiver.tick(89)
    assert motors.done == [(Action.MOVE, {"linear": 0.25, "angular": 0.0})]
    motors.receiver.tick(90)
    assert motors.done[1:] == [(Action.HOLD, None)]
    motors.receiver.receive(torque_off, now_ms=100)
    motors.receiver.tick(500)
    assert motors.done[2:] == [(Action.TORQUE_OFF, None)]


def test_a_guard_that_has_hung_up_leaves_nothing_standing() -> None:
    motors = Motors(PLAIN)
    motors.receiver.receive(PLAIN.conversation[0].hears.line, now_ms=0)
    motors.receiver.leave()
    assert motors.done == []
    motors.receiver.receive(PLAIN.conversation[-3].hears.line, now_ms=10)
    motors.receiver.leave()
    assert [action for action, _ in motors.done] == [Action.MOVE, Action.HOLD]


def test_the_guard_drives_a_function_and_its_death_stops_it(tmp_path: Path) -> None:
    """The function belongs to this process, the guard is another one."""
    done: list[tuple[Action, float]] = []
    speed = 0.0

    def apply(action: Action, axes: Mapping[str, float] | None) -> None:
        nonlocal speed
        speed = axes["linear"] if axes else 0.0
        done.append((action, speed))

    with Sink(port=tmp_path / "motors", axes=["linear"], apply=apply) as sink:
        sink.measured = lambda: {"linear": speed}
        sink.flags = lambda: MotorFlag.MOVING if speed else MotorFlag(0)
        served = threading.Thread(target=sink.serve)
        served.start()
        try:
            robot = Robot(tmp_path, None)  # type: ignore[arg-type]  # its motor controller is the function
            with robot.guarded(port=str(tmp_path / "motors")) as guard:
                drive_until(
                    guard, lambda _: done[-1] == (Action.MOVE, pytest.approx(0.4)), "the function is told to move"
                )
                os.kill(guard.pid, signal.SIGKILL)
                wait_for(lambda: done[-1][0] is Action.HOLD, "it stops by itself")
        finally:
            sink.done = True
            served.join()
    assert done[-1] == (Action.HOLD, 0.0)


def test_it_starts_behind_one_that_was_killed_while_it_started(tmp_path: Path) -> None:
    for name in ("motors", "motors.new"):
        (tmp_path / name).symlink_to("/dev/pts/of-yesterday")
    with Sink(port=tmp_path / "motors", axes=["linear"], apply=lambda _action, _axes: None):
        assert (tmp_path / "motors").exists()
