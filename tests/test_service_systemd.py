"""The shipped unit under a real systemd, where this machine allows one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import termios
from collections.abc import Iterator

import pytest
from patience import wait_for
from robot import AHEAD, Robot, motors
from systemd_machine import SYSTEMD, Machine

from edgeguard.errors import GuardGoneError
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


def drive(machine: Machine, robot: Robot) -> None:
    """Until the model drives, and as fast as it says."""
    with ServiceClient.observing(machine.sockets) as client:

        def drives() -> bool:
            client.observe(AHEAD)
            return client.status().mode is Mode.ARMED and abs(robot.motors.where().axes["linear"] - 0.4) < 1e-6

        wait_for(drives, "the model drives", stands=client.status, pause_s=0.05)


def begun_anew(machine: Machine) -> bool:
    """Whether there is a guard that the model has not driven under yet."""
    with contextlib.suppress(GuardGoneError), ServiceClient.observing(machine.sockets) as client:
        return client.status().counters["model"] == 0
    return False


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

    drive(machine, robot)
    first = machine.show("MainPID")
    machine.run("systemctl", "reload", "edgeguard")
    wait_for(lambda: begun_anew(machine), "the guard begins anew", stands=lambda: machine.show("StatusText"))
    assert machine.show("ActiveState") == "active"
    assert machine.show("MainPID") == first

    machine.run("kill", "-STOP", first)
    machine.wait_until("NRestarts", "1")
    release(robot.motors.port)
    machine.wait_until("SubState", "running")
    assert machine.show("MainPID") != first

    drive(machine, robot)
    machine.run("systemctl", "stop", "edgeguard")
    assert machine.show("ActiveState") == "inactive"
    assert machine.show("Result") == "success"
    last = robot.motors.report().received[-1]
    assert (last.action, last.axes["linear"]) == (Action.STOP, 0.0)
