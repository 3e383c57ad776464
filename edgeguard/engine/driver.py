"""What drives a provider, and what is driven, as texts: its package or library, the kernel's driver, the device.

With another driver or device the same model takes other times, and what a provider has compiled may not even load.
The processor needs none of it: the runtime's version, the kernel's and its own name are known without. Reads files
(NVIDIA's in /proc, the kernel's ABI for modules and PCI) and the packages' metadata; what cannot be read is said to be
none, never an error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from edgeguard.engine.provider import Provider

_DRIVERS = ("proc/driver/nvidia/version", "sys/module/amdgpu/version", "sys/module/xe/srcversion")
_NVIDIA_GPUS = "proc/driver/nvidia/gpus/*/information"
_PCI_GPUS = "sys/class/drm/renderD*/device"  # of the other makers, by the numbers that PCI gives them
_DIGITS = 16


def read_driver(provider: Provider, *, root: Path = Path("/")) -> dict[str, str]:
    """``package`` (with its version, or a library's SHA-256, shortened), ``driver`` and ``device`` of a provider."""
    return {
        "package": f"{provider.package} {_version(provider)}",
        "driver": "; ".join(_first_lines(root)) or "none",
        "device": ", ".join(_devices(root)) or "none",
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
        if line := _text(root / name).partition("\n")[0]:
            yield line


def _devices(root: Path) -> Iterator[str]:
    """Of every GPU, in the order of their buses."""
    named = [model for file in sorted(root.glob(_NVIDIA_GPUS)) for model in re.findall(r"Model:\s*(.*)", _text(file))]
    if named:
        yield from named
        return
    for folder in sorted(root.glob(_PCI_GPUS)):
        numbers = [_text(folder / name).strip() for name in ("vendor", "device")]
        if any(numbers):  # a board's own GPU is on no such bus, and is the board's
            yield ":".join(filter(None, numbers))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:  # not for us to read, or gone meanwhile
        return ""
