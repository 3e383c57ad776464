"""What runs beside the model ends with the measurement, and leaves nothing running."""

from __future__ import annotations

import sys
from pathlib import Path

from patience import wait_for

from edgeguard.bench.calibration.beside import Beside

LEADER = """
import pathlib, signal, subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
stubborn = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
stubborn.stdout.readline()
pathlib.Path(sys.argv[1]).write_text(str(stubborn.pid))
time.sleep(600)
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

        def told() -> str:
            beside.check()
            return said.read_text() if said.exists() else ""

        pid = int(wait_for(told, "it tells whom it has started"))
        assert is_running(pid)
    wait_for(lambda: not is_running(pid), "it has ended")
