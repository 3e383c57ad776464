"""One guard for one state directory: an advisory lock that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import IO

from edgeguard.errors import AlreadyRunningError, ConfigError


def lock_state_directory(directory: Path) -> IO[str]:
    """Take the lock and keep the file open; ``AlreadyRunningError`` names who holds it."""
    file = directory / "guard.lock"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = file.open("a+")
    except OSError as error:
        raise ConfigError(
            f"the state directory {directory} cannot be used ({error.strerror}): make it a directory that this user "
            "may write, or set state_directory"
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        handle.seek(0)
        holder = handle.read().strip() or "unknown"
        handle.close()
        raise AlreadyRunningError(
            f"another guard (process {holder}) uses {directory}: stop it, or give this one a state_directory of its own"
        ) from error
    with contextlib.suppress(OSError):  # a full disk: the lock holds all the same, but is nobody's by name
        handle.truncate(0)
        os.write(handle.fileno(), f"{os.getpid()}\n".encode())
    return handle
