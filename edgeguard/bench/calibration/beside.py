"""The robot's own software, run beside the model while it is measured: a camera node, a planner, a recorder.

A command line as one would type it, without a shell. What it prints goes to a file beside the profile. That it ends
while something is being measured is an error, because the rest would have been measured alone.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from edgeguard.errors import ConfigError

STOP_S = 5.0


class Beside:
    """Runs ``command`` while the ``with`` block lasts; ``check`` raises ``ConfigError`` when it has ended."""

    def __init__(self, command: str, *, output: Path) -> None:
        self.command = command
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Beside:
        try:
            with self._output.open("wb") as output:
                self._process = subprocess.Popen(
                    shlex.split(self.command),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except (OSError, ValueError, IndexError) as error:
            raise ConfigError(f"--with {self.command!r}: cannot be started: {error}") from error
        return self

    def check(self) -> None:
        """Whether it still runs."""
        status = None if self._process is None else self._process.poll()
        if status is not None:
            raise ConfigError(
                f"--with {self.command!r}: ended with status {status} while the model was being measured; "
                f"{self._output} has what it printed"
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ask it and all that it started to end, and see to it."""
        if self._process is None:
            return
        self._tell(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=STOP_S)
        self._tell(signal.SIGKILL)  # it, or what it has left behind
        self._process.wait()

    def _tell(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


@contextlib.contextmanager
def beside(command: str | None, *, output: Path) -> Iterator[Beside | None]:
    """``Beside`` if there is something to run beside the model."""
    if command is None:
        yield None
        return
    with Beside(command, output=output) as running:
        yield running
