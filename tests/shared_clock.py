"""A working clock that several processes share by its file: time passes only where one of them sleeps.

So a fake worker takes exactly as long as its script says, at once, whatever the machine does meanwhile. Nanoseconds.
It is for processes that wait for one another: of two sleeps at the same time the longer one counts.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

from edgeguard.clock import NS_PER_S

_BYTES = 8


class SharedClock:
    """The clock of ``file``; if there is none, it starts there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        if not file.exists():
            file.write_bytes(NS_PER_S.to_bytes(_BYTES, "little"))

    def now_ns(self) -> int:
        return int.from_bytes(self._file.read_bytes(), "little")

    def boottime_ns(self) -> int:
        return self.now_ns()

    def sleep_until_ns(self, when_ns: int) -> None:
        with self._file.open("r+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
            file.write(max(self.now_ns(), when_ns).to_bytes(_BYTES, "little"))
