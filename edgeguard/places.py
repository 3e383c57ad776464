"""Where edgeguard keeps on this machine what it can make again. Asks the environment, makes nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def default_cache_dir() -> Path:
    """$EDGEGUARD_CACHE, else $XDG_CACHE_HOME/edgeguard, else ~/.cache/edgeguard."""
    if own := os.environ.get("EDGEGUARD_CACHE"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "edgeguard"


def compiled_directory(folder: Path, provider: str) -> Path:
    """Where ``provider`` keeps what it has compiled the model in ``folder`` to."""
    return default_cache_dir() / "compiled" / f"{folder.name}-{provider}-{_digest(folder)}"


def compiled_directories(folder: Path) -> tuple[Path, ...]:
    """What any provider has compiled the model in ``folder`` to, or has begun to."""
    found = (default_cache_dir() / "compiled").glob(f"*{folder.name}-*-{_digest(folder)}*")
    return tuple(sorted(path for path in found if path.is_dir()))


def _digest(folder: Path) -> str:
    return hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:8]
