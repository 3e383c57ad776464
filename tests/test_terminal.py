"""Ctrl-C in a terminal is the caller's: it reaches no process of its guard, and what follows the caller decides."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

from patience import wait_for
from robot import Robot, motors

CALLER = """
import os, signal, sys
from pathlib import Path
from edgeguard import Guard
os.open(os.ttyname(0), os.O_RDWR)  # a session's first terminal is the one that controls it
interrupted = []
signal.signal(signal.SIGINT, lambda *_: interrupted.append(True))
config, profile, port, folder, *worker = sys.argv[1:]
with Guard.start(config, profile=profile, port=port, state_directory=folder, worker=worker) as guard:
    before = guard.wait_armed(timeout_s=60, observe_with={"said": "go", "front_m": 2.0})
    Path(folder, "armed").touch()
    while not interrupted:
        guard.decide({"said": "go", "front_m": 2.0})
    after = guard.wait_armed(timeout_s=60, observe_with={"said": "go", "front_m": 2.0})
    while "on the disk" not in guard.status().recorder:
        guard.decide({"said": "go", "front_m": 2.0})
    print("goes on" if before.guard_pid == after.guard_pid else (before, after))
"""


def test_ctrl_c_reaches_no_process_of_the_guard(tmp_path: Path) -> None:
    with motors() as simulator:
        robot = Robot(tmp_path, simulator)
        argv = [sys.executable, "-c", CALLER, str(robot.config), str(robot.profile), simulator.port, str(tmp_path)]
        terminal, theirs = pty.openpty()
        caller = subprocess.Popen(
            [*argv, *robot.worker], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        with os.fdopen(terminal, "rb", buffering=0) as keyboard, caller:
            wait_for((tmp_path / "armed").exists, "it drives", stands=caller.poll)
            os.write(terminal, b"\x03")
            said = b""
            with contextlib.suppress(OSError):  # the other end has closed
                while piece := keyboard.read(4096):
                    said += piece
    assert caller.returncode == 0, said
    assert b"goes on" in said
    assert b"Traceback" not in said
