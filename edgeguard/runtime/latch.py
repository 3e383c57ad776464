"""The latch: the existence of one file in the state directory. Absent means not latched.

It is read once, at the start, and written by a thread of normal priority, so that the tick never waits for a disk.
A directory that cannot be read or written counts as latched, with the remedy: a stop that would be forgotten by a
restart is worse than a robot that asks for its operator.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import SimpleQueue

from edgeguard.disk import sync

LATCH_FILE = "latched"


def default_state_directory(config_file: Path) -> Path:
    """``$STATE_DIRECTORY`` (systemd), else a folder named after the configuration under ``$XDG_STATE_HOME``."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "edgeguard" / config_file.stem


class Latch:
    """The latch file of one state directory. ``problem`` is why the directory cannot be relied on, or ``None``."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / LATCH_FILE
        self.problem: str | None = None
        self._wanted: SimpleQueue[bool | None] = SimpleQueue()
        self.latched = self._probe(directory)
        self._writer = threading.Thread(target=self._write, name="latch", daemon=True)
        self._writer.start()

    def set(self, latched: bool) -> None:
        """Make or remove the file, soon; returns at once."""
        self.latched = latched
        self._wanted.put(latched)

    def close(self) -> None:
        """Let the writer finish what it was asked for."""
        self._wanted.put(None)
        self._writer.join(timeout=2)

    def _probe(self, directory: Path) -> bool:
        probe = directory / ".probe"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
            return self._file.exists()
        except OSError as error:
            self._distrust(error)
            return True

    def _write(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            try:
                if wanted:
                    self._make()
                else:
                    self._file.unlink(missing_ok=True)
            except OSError as error:
                self._distrust(error)

    def _make(self) -> None:
        fd = os.open(self._file, os.O_CREAT | os.O_WRONLY, 0o644)
        os.close(fd)
        sync(self._file.parent)

    def _distrust(self, error: OSError) -> None:
        self.problem = (
            f"the state directory {self._file.parent} cannot be used ({error.strerror}): make it a directory that this "
            "user may write, or set state_directory; then start the guard again"
        )
