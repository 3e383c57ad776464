"""The shipped unit under a real systemd, where this machine allows one."""

from __future__ import annotations

import fcntl
import os
import shutil
import termios
import time
from collections.abc import Iterator

import pytest
from robot import AHEAD, Robot, motors
from systemd_machine import SYSTEMD, Machine

from edgeguard.service.client import ServiceClient
from edgeguard.types import Action, Mode

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="a systemd of its own needs root"),
    pytest.mark.skipif(not SYSTEMD.exists(), reason="systemd is not installed"),
    pytest.mark.skipif(shutil.which("nsenter") is None, reason="util-linux is not installed"),
]


@pytest.fixture
def robot(tmp_path) -> Iterator[Robot]:
    with motors() as simulator:
        folder = tmp_path / "robot"
        folder.mkdir()
        yield Robot(folder, simulator)


@pytest.fixture
def machine(tmp_path, robot) -> Iterator[Machine]:
    try:
        one = Machine(tmp_path, robot)
    except OSError as error:
        pytest.skip(str(error))
    yield one
    one.close()


def drive_until_armed(machine: Machine) -> None:
    with ServiceClient.observing(machine.sockets) as client:
        give_up = time.monotonic() + 20
        while client.status().mode is not Mode.ARMED:
            assert time.monotonic() < give_up, client.status()
            client.observe(AHEAD)
            time.sleep(0.05)
        for _ in range(10):
            client.observe(AHEAD)
            time.sleep(0.05)


def release(port: str) -> None:
    """A killed owner's exclusive use ends with the last close of a port; a simulator keeps its pty open."""
    fd = os.open(port, os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(fd, termios.TIOCNXCL)
    os.close(fd)


def test_the_service_lives_its_whole_life_under_systemd(machine, robot):
    machine.wait_until("SubState", "running")
    machine.wait_until("StatusText", "inhibited")

    sandbox = machine.main_process()
    assert sandbox["NoNewPrivs"] == "1"
    assert sandbox["Seccomp"] == "2"
    assert int(sandbox["CapBnd"], 16) == 0
    assert sandbox["Uid"].split()[0] != "0"

    found = machine.doctor()
    said = {one["check"]: one for one in found["findings"]}
    assert said["state"]["text"] == "/var/lib/edgeguard can be written; not latched"
    assert "running guard has it" in said["round trip"]["text"]
    with ServiceClient.controlling(machine.sockets) as client:
        granted = client.status().scheduling  # the same limits, so the same answer, whatever this machine allows
    assert any(granted in one["text"] for one in found["findings"] if one["check"] == "real time")
    assert machine.show("ActiveState") == "active"

    drive_until_armed(machine)
    assert robot.motors.where().axes["linear"] == pytest.approx(0.4, abs=0.05)
    first = machine.show("MainPID")
    machine.run("systemctl", "reload", "edgeguard")
    time.sleep(3)
    machine.wait_until("StatusText", "inhibited")
    assert machine.show("ActiveState") == "active"
    assert machine.show("MainPID") == first

    machine.run("kill", "-STOP", first)
    machine.wait_until("NRestarts", "1")
    release(robot.motors.port)
    machine.wait_until("SubState", "running")
    assert machine.show("MainPID") != first

    drive_until_armed(machine)
    stopped_ns = time.monotonic_ns()
    machine.run("systemctl", "stop", "edgeguard")
    assert machine.show("ActiveState") == "inactive"
    assert machine.show("Result") == "success"
    received = robot.motors.report(since_ns=stopped_ns).received
    speeds = [one.axes["linear"] for one in received if one.action is Action.STOP]
    assert len({speed for speed in speeds if 0 < speed < 0.4}) >= 5
    assert speeds[-1] == 0.0
