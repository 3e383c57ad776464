"""Where profiles are kept: written whole or not at all, and found again by what they belong to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from edgeguard.budget import Profile, fingerprint_digest, profile_text
from edgeguard.clock import ms_from_ns
from edgeguard.disk import sync
from edgeguard.errors import ProfileError

GENERATION = 2
"""Of what a worker says of itself: a profile of an older one lacks some of it, and no worker would be its own."""


def write_profile(profile: Profile, file: Path) -> None:
    """Write, sync, rename: after an interruption or a power cut there is the old file or the new one."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("w", encoding="utf-8") as stream:
                stream.write(profile_text(profile))
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
        sync(file.parent)
    except OSError as error:
        raise ProfileError(f"{file}: the profile cannot be written: {error.strerror}; name another --out") from error


def cached_file(fingerprint: Mapping[str, str], *, period_ns: int, cache_dir: Path) -> Path:
    """Where the profile of this fingerprint at this period is kept."""
    name = f"{fingerprint_digest(fingerprint)}-{ms_from_ns(period_ns):g}ms-{GENERATION}.json"
    return cache_dir / "calibration" / name
