"""A guard that runs as a service on a test's robot, and who talks to it: clients, a command line, a manager."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from patience import PATIENCE_S, wait_for
from robot import AHEAD, Robot

from edgeguard.runtime.status import Status
from edgeguard.service.client import ServiceClient
from edgeguard.types import Cause, Mode

T = TypeVar("T")

EDGEGUARD = [sys.executable, "-m", "edgeguard"]


class Manager:
    """What systemd does for a service of Type=notify: listens all the time, and knows what it was ``told``."""

    def __init__(self, folder: Path, *, watchdog_ms: int = 400) -> None:
        self._address = str(folder / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self._address)
        self.environment = {"NOTIFY_SOCKET": self._address, "WATCHDOG_USEC": str(watchdog_ms * 1_000)}
        self.told: list[str] = []
        self._taken = 0
        self._ear = threading.Thread(target=self._hear)
        self._ear.start()

    def wait_for(self, text: str) -> str:
        """The next assignment that has ``text`` in it, of those that nobody has taken; it and all before it are."""

        def look() -> str:
            while self._taken < len(self.told):
                self._taken += 1
                if text in self.told[self._taken - 1]:
                    return self.told[self._taken - 1]
            return ""

        return wait_for(look, f"{text} is told", stands=lambda: self.told)

    def take(self) -> list[str]:
        """Every assignment that has been sent by now and that nobody has taken: our own word comes behind them."""
        begin = self._taken
        self._socket.sendto(b"END", self._address)
        self.wait_for("END")
        return self.told[begin : self._taken - 1]

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._ear.join()
        self._socket.close()

    def _hear(self) -> None:
        while packet := self._socket.recv(4096):
            self.told += packet.decode().split("\n")


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

    def drive_until(self, wanted: Callable[[], T], why: str) -> T:
        """Observations at about the robot's period until there is what is ``wanted``."""
        with self.client() as client:

            def look() -> T:
                client.observe(AHEAD)
                return wanted()

            return wait_for(look, why, stands=self.status, pause_s=0.05)

    def drive_until_armed(self, *, speed: float = 0.4) -> None:
        """Until the model drives, and as fast as it says."""
        self.drive_until(lambda: self.moves(speed) and self.status().mode is Mode.ARMED, f"it drives at {speed}")

    def moves(self, speed: float) -> bool:
        """Whether the motor controller goes just as fast."""
        return abs(self.robot.motors.where().axes["linear"] - speed) < 1e-6

    def wait_for_cause(self, cause: Cause) -> None:
        wait_for(lambda: cause in self.status().causes, f"the cause {cause.value}", stands=self.status)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def halt(self) -> None:
        """Set the guard aside until SIGCONT."""
        assert self.process is not None
        stat = Path(f"/proc/{self.process.pid}/stat")
        self.signal(signal.SIGSTOP)
        wait_for(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it has stopped", stands=stat.read_text)

    def wait(self) -> int:
        """The exit code."""
        assert self.process is not None
        return self.process.wait(timeout=PATIENCE_S)

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
