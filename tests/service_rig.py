"""A guard that runs as a service on a test's robot, and who talks to it: clients, a command line, a manager."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from robot import AHEAD, Robot

from edgeguard.runtime.status import Status
from edgeguard.service.client import ServiceClient
from edgeguard.types import Mode

EDGEGUARD = [sys.executable, "-m", "edgeguard"]


class Manager:
    """What systemd does for a service of Type=notify: listens, and knows what it was told and when."""

    def __init__(self, folder: Path, *, watchdog_ms: int = 400) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self.environment = {"NOTIFY_SOCKET": str(folder / "notify"), "WATCHDOG_USEC": str(watchdog_ms * 1_000)}
        self.told: list[str] = []

    def listen(self, seconds: float) -> list[str]:
        """The assignments that come within ``seconds``."""
        give_up, heard = time.monotonic() + seconds, []
        while (left := give_up - time.monotonic()) > 0 and select.select([self._socket], [], [], left)[0]:
            heard += self._socket.recv(4096).decode().split("\n")
        self.told += heard
        return heard

    def wait_for(self, text: str, *, seconds: float = 15) -> str:
        """The first assignment from now on that has ``text`` in it."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            for line in self.listen(0.05):
                if text in line:
                    return line
        raise AssertionError(f"never told {text}: {self.told}")

    def close(self) -> None:
        self._socket.close()


class ServedRobot:
    """One robot and its running service."""

    def __init__(self, robot: Robot, manager: Manager) -> None:
        self.robot = robot
        self.manager = manager
        self.sockets = robot.folder / "run"
        self.log = robot.folder / "service.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def run_command(self) -> list[str]:
        robot = self.robot
        return [
            *(*EDGEGUARD, "run", "--config", str(robot.config), "--profile", str(robot.profile)),
            *("--port", robot.motors.port, "--state-directory", str(robot.folder / "state")),
            *("--sockets", str(self.sockets), "--worker", shlex.join(robot.worker)),
        ]

    def start(self, *more: str) -> None:
        """Start it, and return when the manager is told that it is ready."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.run_command, *more], stderr=log, env={**os.environ, **self.manager.environment}
            )
        self.manager.wait_for("READY=1")

    def client(self) -> ServiceClient:
        return ServiceClient.observing(self.sockets)

    def say(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of its own, as an operator's."""
        argv = [*EDGEGUARD, *words, "--sockets", str(self.sockets)]
        return subprocess.run(argv, capture_output=True, text=True, check=False)

    def status(self) -> Status:
        with ServiceClient.controlling(self.sockets) as client:
            return client.status()

    def drive(self, seconds: float, **fields) -> None:
        """Observations at the robot's period for so long."""
        with self.client() as client:
            give_up = time.monotonic() + seconds
            while time.monotonic() < give_up:
                client.observe({**AHEAD, **fields})
                time.sleep(0.05)

    def drive_until_armed(self) -> None:
        with self.client() as client:
            give_up = time.monotonic() + 20
            while client.status().mode is not Mode.ARMED:
                assert time.monotonic() < give_up, client.status()
                client.observe(AHEAD)
                time.sleep(0.05)
        self.drive(0.5)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit code."""
        assert self.process is not None
        return self.process.wait(timeout=15)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.manager.close()


@contextlib.contextmanager
def served(robot: Robot) -> Iterator[ServedRobot]:
    service = ServedRobot(robot, Manager(robot.folder))
    try:
        yield service
    finally:
        service.close()
