"""A whole guard to measure, shared by the scripts beside it: the service's process with recorder and metrics on.

The motor controller is simulated on a pty, the tests' scripted worker stands in place of the model, and observations
come at the robot's own period. ``SystemExit`` when the guard does not get armed.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from robot import AHEAD, CONFIG, Robot, motors

from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.budget import Schedule, load_profile
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import GuardGoneError
from edgeguard.runtime.status import Status
from edgeguard.service.client import ServiceClient
from edgeguard.types import Mode

START_S = 30.0


class Guarded:
    """A running service. ``drive`` is what the robot's software does."""

    def __init__(self, sockets: Path, *, period_s: float, process: subprocess.Popen[bytes]) -> None:
        self._sockets = sockets
        self._period_s = period_s
        self._process = process

    def status(self) -> Status:
        with ServiceClient.controlling(self._sockets) as client:
            return client.status()

    def drive(self, seconds: float) -> None:
        """One observation per period."""
        with ServiceClient.observing(self._sockets) as client:
            due = time.monotonic()
            end = due + seconds
            while due < end:
                client.observe(AHEAD)
                due = max(due + self._period_s, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))

    def await_armed(self) -> None:
        """Drive until the model's commands go out."""
        give_up = time.monotonic() + START_S
        while True:
            with contextlib.suppress(GuardGoneError):
                if self.status().mode is Mode.ARMED:
                    return
                self.drive(0.3)
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise SystemExit("the guard was not armed: see its message above")
            time.sleep(0.05)


@contextlib.contextmanager
def guarded(*, period_ms: int, tick_ms: int, prefix: Sequence[str] = ()) -> Iterator[Guarded]:
    """Run one; ``prefix`` is a command in front of it, such as ``setpriv``."""
    with tempfile.TemporaryDirectory() as folder, motors() as simulator:
        robot = Robot(Path(folder), simulator)
        text = CONFIG.replace("tick_ms = 10", f"tick_ms = {tick_ms}").replace(" = 60\n", f" = {period_ms}\n")
        text = text.replace("max_age_ms = 40", f"max_age_ms = {period_ms // 2}")
        text = text.replace("reserve_ms = 5", "reserve_ms = 1")
        text = text.replace("observation_timeout_ms = 200", f"observation_timeout_ms = {10 * period_ms}")
        robot.config.write_text(text + '\n[metrics]\ntextfile = "edgeguard.prom"\n')
        robot.behave(passes=[4, 2], base_ms=0.3, token_ms=0.05, bound_ms=None)  # an answer in about 1.2 ms
        _fit_profile(robot.profile, period_ns=period_ms * NS_PER_MS)
        sockets = Path(folder) / "run"
        argv = [
            *prefix, sys.executable, "-m", "edgeguard", "run", "--config", str(robot.config),
            "--profile", str(robot.profile), "--port", simulator.port, "--state-directory", str(Path(folder) / "state"),
            "--sockets", str(sockets), "--worker", shlex.join(robot.worker),
        ]  # fmt: skip
        process = subprocess.Popen(argv)
        try:
            one = Guarded(sockets, period_s=period_ms / 1_000, process=process)
            one.await_armed()
            yield one
        finally:
            process.terminate()
            process.wait()


def _fit_profile(file: Path, *, period_ns: int) -> None:
    """The tests' profile, at this period and with a bound that fits it."""
    profile = load_profile(file)
    bounds = tuple(replace(bound, bound_ns=period_ns // 4) for bound in profile.bounds)
    write_profile(replace(profile, kind="full", schedule=Schedule(period_ns=period_ns), bounds=bounds), file)
