"""Brings files and folders to the disk, so that a power cut cannot take what a rename has already shown; locks files.

A folder's names are its own content: sync a file, rename it, sync its folder. May wait for as long as the disk takes,
or who holds the lock: never in the guard's tick. Raises ``OSError``.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until the content of the file, or the names in the folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file lock; the kernel lets go of it when the process ends, however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
