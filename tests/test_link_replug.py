"""The cable is pulled and plugged in again under another name: a whole guard, and the C motor controller behind it."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from patience import wait_for
from robot import Robot, drive, drive_until
from test_link_firmware import COMPILER, FIRST_SESSION, build

from edgeguard.link.pty_port import PtyPort
from edgeguard.types import Cause, Mode, Source

LATE_MS = 30_000
"""More than any machine adds to 80 ms, or to the 700 ms between attempts to open a port and to greet who is there."""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler (gcc or cc) is installed")


class Cable:
    """Between a pty that comes and goes and a motor controller that stays under power. A pulled one loses its bytes."""

    def __init__(self) -> None:
        self._near, self.far = socket.socketpair()
        self._near.setblocking(False)
        self._port: PtyPort | None = None
        self._lock = threading.Lock()
        self._done = False
        self._carrier = threading.Thread(target=self._carry)
        self._carrier.start()

    def plug(self, path: Path) -> str:
        """Returns the name that the device has this time."""
        with self._lock:
            self._port = PtyPort(path=path)
        return str(path.readlink())

    def pull(self) -> None:
        with self._lock:
            if self._port is not None:
                self._port.close()
            self._port = None

    def close(self) -> None:
        self._done = True
        self._carrier.join()
        self.pull()
        self._near.close()
        self.far.close()

    def _carry(self) -> None:
        while not self._done:
            time.sleep(0.001)
            with self._lock:
                if self._port is not None:
                    with suppress(BlockingIOError):
                        self._near.sendall(self._port.read())
                if select.select([self._near], [], [], 0)[0]:
                    said = self._near.recv(4096)
                    if self._port is not None:
                        self._port.write(said)


@contextmanager
def board(folder: Path) -> Iterator[tuple[Cable, Path]]:
    """The firmware with one axis behind a cable, and the file in which it says what it does."""
    host, log, cable = build(folder / "host", axis_count=1), folder / "firmware.log", Cable()
    command = [str(host), "80", "0", str(FIRST_SESSION), str(cable.far.fileno())]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, pass_fds=[cable.far.fileno()]) as process:
        try:
            yield cable, log
        finally:
            process.kill()
            cable.close()


def actions(log: Path) -> list[tuple[int, str, float]]:
    """``(ms of the monotonic clock, action, speed)`` of everything that was carried out."""
    whole = log.read_text().rpartition("\n")[0]  # the last line may be being written
    lines = [line.split() for line in whole.splitlines() if "reply" not in line]
    return [(int(ms), action, float(axes[0]) if axes else 0.0) for ms, action, *axes in lines]


@pytest.mark.parametrize(
    ("port", "first", "second"),
    [("usb-motor", "usb-motor", "usb-motor"), ("usb-motor-*", "usb-motor-A", "usb-motor-B")],
    ids=["a link that leads elsewhere", "wildcards"],
)
def test_after_a_replug_under_another_name_commands_flow_again_and_none_is_old(
    tmp_path: Path, port: str, first: str, second: str
) -> None:
    with board(tmp_path) as (cable, log):
        name = cable.plug(tmp_path / first)
        robot = Robot(tmp_path, None)  # type: ignore[arg-type]  # its motor controller is the board
        with robot.guarded(port=str(tmp_path / port)) as guard:
            drive_until(guard, lambda _: actions(log)[-1][1:] == ("move", pytest.approx(0.4)), "it is at full speed")
            cable.pull()
            records = drive(guard, 10)  # at full speed until then, and nobody hears it now
            assert any(Cause.LINK_LOST in record.decision.causes for record in records)
            wait_for(lambda: actions(log)[-1][1] == "hold", "the board stops by itself")
            before = actions(log)
            held = []
            while not Path(name).exists():  # so that the device cannot get its old name again
                held += os.openpty()
            assert cable.plug(tmp_path / second) != name
            returned_ms = time.monotonic() * 1e3
            armed = drive_until(guard, lambda one: one.decision.source is Source.MODEL, "the model drives again")[-1]
            for descriptor in held:
                os.close(descriptor)
    assert armed.mode is Mode.ARMED
    assert before[-2][1] != "hold"
    assert before[-1][0] - before[-2][0] < LATE_MS, "the link time-out after the last frame, by the board's own clock"
    after = actions(log)[len(before) :]
    assert int(returned_ms) <= after[0][0] < returned_ms + LATE_MS, "commands flow again"
    assert after[0][1:] == ("stop", 0.0), "the first one is a stop, and nothing from before the cut"
    speeds = [speed for _, action, speed in after if action == "move"]
    assert speeds[0] <= 0.05, "it drives off from rest, not with what was on its way"
