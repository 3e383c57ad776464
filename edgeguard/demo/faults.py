"""What the demo breaks, one row each: what is announced, how it begins, how it ends. The rest is the guard's.

Every fault is real: signals to real processes, real load on the cores, a pty that goes away. None of them tells the
guard. All end by themselves or are ended here, except the last: nobody comes back from being killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from edgeguard.clock import NS_PER_MS, Clock
from edgeguard.demo.operator import Utterance
from edgeguard.demo.robot import Robot

HOGS_PER_CORE = 4
"""The worker's share of a core falls to a fifth: no answer fits its deadline any more."""

RAMBLE_NS = 1_500 * NS_PER_MS
"""Long enough for the robot to come to rest under it."""

_HOG = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""

_LONG = "go to "
_GRID = "41.7283 9.1174 then "


@dataclass(slots=True, kw_only=True)
class Scene:
    """What a fault may lay hands on. ``undo`` holds what must not outlive the demo, whatever happens."""

    robot: Robot
    clock: Clock
    longest_phrase: int
    undo: ExitStack
    hogs: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def worker_pid(self) -> int | None:
        return self.robot.guard.status().worker_pid


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``begin`` and ``end`` return at once; without an ``end`` it ends by itself. ``fatal``: no guard is left."""

    name: str
    announcement: str
    begin: Callable[[Scene], None]
    end: Callable[[Scene], None] | None = None
    fatal: bool = False


def _signal_worker(number: signal.Signals) -> Callable[[Scene], None]:
    def send(scene: Scene) -> None:
        pid = scene.worker_pid
        if pid is not None:
            os.kill(pid, number)

    return send


def _starve(scene: Scene) -> None:
    for core in os.sched_getaffinity(0):
        for _ in range(HOGS_PER_CORE):
            command = [sys.executable, "-c", _HOG, str(core)]
            # A session each: the kernel shares a core between sessions before it does between processes (autogroup).
            hog = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
            scene.hogs.append(hog)
            scene.undo.callback(hog.wait)
            scene.undo.callback(hog.kill)


def _feed(scene: Scene) -> None:
    for hog in scene.hogs:
        hog.kill()
    for hog in scene.hogs:
        hog.wait()
    scene.hogs.clear()


def _ramble(scene: Scene) -> None:
    """Digits, because to the model every one of them is a token."""
    text = (_LONG + _GRID * scene.longest_phrase)[: scene.longest_phrase].strip()
    operator = scene.robot.operator
    operator.say(Utterance(text=text, wish=operator.said.wish), now_ns=scene.clock.now_ns(), takes_ns=RAMBLE_NS)


def _cut(scene: Scene) -> None:
    scene.robot.motors.cut()


def _restore(scene: Scene) -> None:
    scene.robot.motors.restore()


FAULTS: Sequence[Fault] = (
    Fault(
        name="worker stopped",
        announcement="the model's process is stopped (SIGSTOP)",
        begin=_signal_worker(signal.SIGSTOP),
    ),
    Fault(
        name="cores starved",
        announcement=f"{HOGS_PER_CORE} other programs want each of the model's cores",
        begin=_starve,
        end=_feed,
    ),
    Fault(
        name="prompt too long",
        announcement="the operator reads out coordinates: more tokens than the budget has time for",
        begin=_ramble,
    ),
    Fault(
        name="late answer",
        announcement="one answer is held back until its deadline has passed",
        begin=_signal_worker(signal.SIGUSR1),
    ),
    Fault(
        name="sensor frozen",
        announcement="the range sensor in front repeats its last reading",
        begin=lambda scene: scene.robot.freeze_front(),
        end=lambda scene: scene.robot.thaw_front(),
    ),
    Fault(
        name="link cut",
        announcement="the serial cable is pulled",
        begin=_cut,
        end=_restore,
    ),
    Fault(
        name="guard killed",
        announcement="and last the guard itself is killed (SIGKILL)",
        begin=lambda scene: os.kill(scene.robot.guard.pid, signal.SIGKILL),
        fatal=True,
    ),
)
