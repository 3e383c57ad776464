"""Brings files and folders to the disk, so that a power cut cannot take what a rename has already shown.

A folder's names are its own content: sync a file, rename it, sync its folder. May wait for as long as the disk takes:
never in the guard's tick. Raises ``OSError``.
"""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Wait until the content of the file, or the names in the folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
