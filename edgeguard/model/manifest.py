"""The manifest of a built folder: what it was made of, and the size and SHA-256 of every file in it.

``manifest.json``, format ``edgeguard.model/1``. It is written last, so a folder that has one is complete.
``is_complete`` compares sizes only (instant); ``verify`` hashes (about a second for 300 MB).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from edgeguard.errors import ModelError

MANIFEST_NAME = "manifest.json"
FORMAT = "edgeguard.model/1"

_CHUNK_BYTES = 1 << 20


def write(folder: Path, *, facts: dict[str, Any]) -> None:
    """List the files of ``folder`` and write them, after ``facts``, into its manifest."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST_NAME
    }
    content = {"format": FORMAT, **facts, "files": files}
    (folder / MANIFEST_NAME).write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, Any] | None:
    """The manifest, or None if the folder has none (it was built by another tool)."""
    path = folder / MANIFEST_NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}; build the model again") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("files"), dict):
        raise ModelError(f"{path}: is no manifest of the format {FORMAT}; build the model again")
    return content


def is_complete(folder: Path) -> bool:
    """Whether every file of the manifest is there with its size."""
    try:
        content = read(folder)
    except ModelError:
        return False
    return content is not None and all(
        (folder / name).is_file() and (folder / name).stat().st_size == entry["bytes"]
        for name, entry in content["files"].items()
    )


def verify(folder: Path) -> dict[str, Any]:
    """The manifest, empty if there is none; ``ModelError`` names the first file that is not the one that was built."""
    content = read(folder) or {}
    for name, entry in content.get("files", {}).items():
        path = folder / name
        if not path.is_file():
            raise ModelError(f"{path}: is missing; build the model again")
        if sha256_of(path) != entry["sha256"]:
            raise ModelError(f"{path}: is damaged (its SHA-256 is not the manifest's); build the model again")
    return content


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
