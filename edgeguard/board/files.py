"""Reads the small files of ``/sys`` and ``/proc``: one text, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path

_READ_LIMIT = 65_536


def read_file(path: Path) -> str:
    """The file's text, without the NUL that ends device-tree strings. ``OSError`` when it cannot be read."""
    with path.open("rb") as file:
        content = file.read(_READ_LIMIT)
    return content.decode("utf-8", errors="replace").strip("\0 \t\r\n")


def read_text(path: Path) -> str | None:
    """The same; ``None`` when there is nothing to read, whatever the reason."""
    try:
        return read_file(path) or None
    except OSError:
        return None
