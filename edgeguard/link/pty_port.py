"""The far end of a serial wire without hardware: a raw pty whose near end has a name that survives replugging.

Closing it is unplugging: whoever has the near end open gets the errors of a device that is gone. Never blocks.
"""

from __future__ import annotations

import os
import tty
from contextlib import suppress
from pathlib import Path

_READ_LIMIT_BYTES = 4096


class PtyPort:
    """An open pty. The near end is ``path``, a symbolic link to the pty's changing name."""

    def __init__(self, *, path: Path) -> None:
        # The near end stays open here too, so that a guard that closes its own does not hang up ours.
        self._fd, self._near = os.openpty()
        tty.setraw(self._near)
        os.set_blocking(self._fd, False)
        self.path = path
        fresh = path.with_name(f"{path.name}.new")
        fresh.unlink(missing_ok=True)  # of one that was killed right here
        fresh.symlink_to(os.ttyname(self._near))
        fresh.replace(path)

    def fileno(self) -> int:
        return self._fd

    def read(self) -> bytes:
        """What has arrived, or nothing."""
        try:
            return os.read(self._fd, _READ_LIMIT_BYTES)
        except BlockingIOError:
            return b""

    def write(self, data: bytes) -> None:
        """What does not fit is lost, as on a line that nobody listens to."""
        with suppress(BlockingIOError):
            os.write(self._fd, data)

    def close(self) -> None:
        """Unplug: the near end hangs up, and its name is gone."""
        self.path.unlink(missing_ok=True)
        os.close(self._fd)
        os.close(self._near)
