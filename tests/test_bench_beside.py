"""What runs beside the model ends with the measurement, and leaves nothing running."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from edgeguard.bench.calibration.beside import Beside

LEADER = """
import pathlib, signal, subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
stubborn = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
stubborn.stdout.readline()
pathlib.Path(sys.argv[1]).write_text(str(stubborn.pid))
time.sleep(60)
"""


def is_running(pid: int) -> bool:
    """A process that has ended, and that nobody has asked for, counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_it_has_started_ends_too_even_when_it_does_not_listen(tmp_path: Path) -> None:
    script, said = tmp_path / "leader.py", tmp_path / "pid"
    script.write_text(LEADER)
    with Beside(f"{sys.executable} {script} {said}", output=tmp_path / "log") as beside:
        give_up_s = time.monotonic() + 20
        while not (said.exists() and said.read_text()) and time.monotonic() < give_up_s:
            beside.check()
            time.sleep(0.02)
        pid = int(said.read_text())
        assert is_running(pid)
    give_up_s = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < give_up_s:
        time.sleep(0.02)
    assert not is_running(pid)
