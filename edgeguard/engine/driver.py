"""Which software drives a provider, as texts: its package or library, and the kernel's driver of its device.

With another driver the same model takes other times, and what a provider has compiled may not even load. The processor
needs neither: the runtime's version and the kernel's are known without. Reads files and the packages' metadata; what
cannot be read is said to be none, never an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from edgeguard.engine.provider import Provider

_DRIVERS = ("proc/driver/nvidia/version", "sys/module/amdgpu/version", "sys/module/xe/srcversion")
_DIGITS = 16


def read_driver(provider: Provider, *, root: Path = Path("/")) -> dict[str, str]:
    """``package`` (with its version, or a library's SHA-256, shortened) and ``driver`` of a provider."""
    return {
        "package": f"{provider.package} {_version(provider)}",
        "driver": "; ".join(_first_lines(root)) or "none",
    }


def _version(provider: Provider) -> str:
    if provider.library is not None:
        file = Path(provider.library)
        return hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGITS] if file.is_file() else "not there"
    import importlib.metadata

    try:
        return importlib.metadata.version(provider.package)
    except importlib.metadata.PackageNotFoundError:
        return "not packaged"


def _first_lines(root: Path) -> Iterator[str]:
    for name in _DRIVERS:
        if (root / name).is_file():
            yield (root / name).read_text(encoding="utf-8", errors="replace").partition("\n")[0]
