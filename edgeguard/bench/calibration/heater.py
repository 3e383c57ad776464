"""Load on the cores that the model leaves free, so that the board gets as hot as it ever will.

``stress-ng`` where it is installed, else processes that multiply numbers as fast as they can
(``python -m edgeguard.bench.calibration.heater PARENT [COMMAND…]``, which also settles who runs ``stress-ng``). A
heater has the lowest priority, so that on a board without a spare core it takes what the model's own requests leave.
It is on while the ``with`` block lasts and leaves nothing behind, whatever ends us.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence

from edgeguard.engine.process import die_with_parent

STRESS_NG = "stress-ng"


def heater_command(cores: int, *, found: str | None = None) -> tuple[str, Sequence[Sequence[str]]]:
    """The co-load's name, and the command lines that make it on so many cores. ``found``: where ``stress-ng`` is."""
    ours = [sys.executable, "-m", "edgeguard.bench.calibration.heater", str(os.getpid())]
    if found is not None:
        return f"{STRESS_NG} on {cores} cores", [[*ours, found, "--cpu", str(cores), "--quiet"]]
    return f"built-in on {cores} cores", [ours] * cores


def spare_cores() -> int:
    """All that this process may use but one; at least one."""
    return max(1, len(os.sched_getaffinity(0)) - 1)


@contextlib.contextmanager
def heat(cores: int | None = None) -> Iterator[str]:
    """Keep so many cores at it (default: ``spare_cores``); yields the co-load's name."""
    name, commands = heater_command(spare_cores() if cores is None else cores, found=shutil.which(STRESS_NG))
    with contextlib.ExitStack() as stack:
        for command in commands:
            stack.enter_context(_running(command))
        yield name


@contextlib.contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def main(argv: Sequence[str]) -> None:
    parent_pid, *command = argv
    die_with_parent(parent_pid=int(parent_pid))
    os.nice(19)
    if command:
        os.execv(command[0], command)
    while True:
        pow(3, 100_003, 2**4_001 - 1)


if __name__ == "__main__":
    main(sys.argv[1:])
