"""Ctrl-C at any time: as a terminal sends it, to every process in the foreground; no traceback, and nobody stays."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from engine_setup import write_config
from flights import SCENARIOS
from patience import wait_for
from robot import Robot, motors
from service_rig import EDGEGUARD, Manager, ServedRobot
from tiny import tiny_model

from edgeguard.cli.main import INTERRUPTED

ENDED = (INTERRUPTED, -signal.SIGINT)
"""To a shell they are one."""

MARK = "EDGEGUARD_TEST_MARK"


class Command:
    """One command in a terminal of its own, which says what it has just imported, into a file."""

    def __init__(self, argv: Sequence[str], log: Path) -> None:
        self._log = log
        self._mark = secrets.token_hex(8)
        with log.open("wb") as stderr:
            self._process = subprocess.Popen(
                argv,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, MARK: self._mark, "PYTHONPROFILEIMPORTTIME": "1"},
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def until_imported(self, module: str) -> None:
        """Until it says that this module has been imported."""
        wait_for(lambda: f" {module}\n" in self.said, f"it imports {module}", stands=lambda: self.said, pause_s=0.002)

    def interrupt(self) -> int:
        """Ctrl-C; the exit code, once everybody has ended."""
        os.killpg(self._process.pid, signal.SIGINT)
        wait_for(lambda: not self.alive(), "all that it has started ends", stands=self.alive)
        return self._process.wait()

    def alive(self) -> list[str]:
        """Every process that has our mark in its environment."""
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if f"{MARK}={self._mark}".encode() in environment.read_bytes():
                    found.append(environment.with_name("cmdline").read_text())
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def begun(argv: Sequence[str], folder: Path) -> Iterator[Command]:
    command = Command(argv, folder / "said")
    try:
        yield command
    finally:
        command.close()


@pytest.fixture
def endless(tmp_path: Path) -> list[str]:
    """A command that computes for longer than any of these tests waits."""
    script = (SCENARIOS / "one_late_answer.toml").read_text()
    scenario = tmp_path / "long.toml"
    scenario.write_text(script.replace("duration_ms = 6000", "duration_ms = 3_000_000"))
    assert scenario.read_text() != script
    (tmp_path / "robot.toml").write_text((SCENARIOS / "robot.toml").read_text())
    return [*EDGEGUARD, "simulate", str(scenario)]


@pytest.mark.parametrize(
    "module", ["argparse", "edgeguard.errors", "edgeguard.config", "edgeguard.cli.simulate", "edgeguard.cli.commands"]
)
def test_while_a_command_imports_what_it_needs(endless: list[str], tmp_path: Path, module: str) -> None:
    with begun(endless, tmp_path) as command:
        command.until_imported(module)
        assert command.interrupt() in ENDED
        assert "Traceback" not in command.said


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.1, 0.5, 1.0])
def test_while_it_works(endless: list[str], tmp_path: Path, delay_s: float) -> None:
    with begun(endless, tmp_path) as command:
        command.until_imported("edgeguard.cli.commands")
        time.sleep(delay_s)
        assert command.interrupt() in ENDED
        assert "Traceback" not in command.said


@pytest.mark.parametrize("delay_s", [0.0, 0.1, 0.2, 0.4, 0.8, 1.6])
def test_while_a_guard_starts(tmp_path: Path, delay_s: float) -> None:
    """First the command, then the service that it becomes, which starts the recorder, the board's watch, the worker."""
    with motors() as simulator:
        served = ServedRobot(Robot(tmp_path, simulator), Manager(tmp_path))
        try:
            with begun(served.run_command, tmp_path) as command:
                command.until_imported("edgeguard.cli.commands")
                time.sleep(delay_s)
                assert command.interrupt() in (0, *ENDED), "0 once it ticks: it ends as told"
                log = tmp_path / "state" / "worker.log"
                assert "Traceback" not in command.said + (log.read_text() if log.exists() else "")
        finally:
            served.close()


@pytest.mark.parametrize("delay_s", [0.0, 0.2, 0.5, 1.0, 2.0])
def test_while_a_model_is_loaded_and_measured(tmp_path: Path, delay_s: float) -> None:
    config = write_config(tmp_path, ("./model", str(tiny_model(tmp_path))))
    with begun([*EDGEGUARD, "bench", "--breakdown", str(config), "--requests", "100000"], tmp_path) as command:
        command.until_imported("edgeguard.bench.worker_client")
        time.sleep(delay_s)
        assert command.interrupt() in ENDED
        assert "Traceback" not in command.said


SWALLOWED = """
import signal, sys, weakref
from edgeguard import interrupt
class Thing: pass
def loses(_):
    signal.raise_signal(signal.SIGINT)
    lost.append(True)
interrupt.is_raised()
lost, thing = [], Thing()
kept = weakref.ref(thing, loses)
try:
    del thing
    while True:
        pass
except KeyboardInterrupt:
    print("raised again", lost)
"""


def test_what_is_swallowed_where_nothing_can_be_raised_is_raised_again() -> None:
    done = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("raised again []\n", "")


IMPORTED = """
import sys
from edgeguard import interrupt
sys.path.insert(0, sys.argv[1])
interrupt.is_raised()
try:
    import interrupted
    while True:
        pass
except KeyboardInterrupt:
    print("raised when it was imported", interrupted.whole)
"""


def test_an_import_is_not_broken_off(tmp_path: Path) -> None:
    """An extension may make of it that it is missing."""
    (tmp_path / "interrupted.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n")
    argv = [sys.executable, "-c", IMPORTED, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("raised when it was imported True\n", "")


HELD = """
import os, signal, sys
from edgeguard import interrupt
sys.path.insert(0, sys.argv[1])
{what}
code = "from edgeguard import interrupt; print('begun', flush=True); interrupt.ends_at_once(); print('lives on')"
os.execv(sys.executable, [sys.executable, "-c", code])
"""


@pytest.mark.parametrize(
    "what",
    [
        "interrupt.is_held_back(); signal.raise_signal(signal.SIGINT)",
        "interrupt._AGAIN_S = 60.0; interrupt.is_raised(); import interrupted; interrupt.is_held_back()",
    ],
    ids=["one that comes now", "one that came in an import"],
)
def test_what_is_held_back_comes_when_the_next_program_is_ready_for_it(tmp_path: Path, what: str) -> None:
    (tmp_path / "interrupted.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)\n")
    argv = [sys.executable, "-c", HELD.format(what=what), str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "begun\n", "")
