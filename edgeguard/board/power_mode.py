"""Which of its power modes a machine is set to, and how fast its clocks may be: both are part of what was measured.

A row per kind of machine, like the table of sensors. Read from files, because the vendors' tools may hang or be absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from edgeguard.board.files import read_text
from edgeguard.board.reading import Kind
from edgeguard.board.table import find_files


def _nvpmodel(root: Path) -> str | None:
    """Jetson: what ``nvpmodel -m`` has set last, by its name in the board's own list."""
    status = re.search(r"pmode:(\d+)", read_text(root / "var/lib/nvpmodel/status") or "")
    if status is None:
        return None
    number = int(status[1])
    named = re.search(rf"POWER_MODEL\s+ID={number}\s+NAME=(\S+)", read_text(root / "etc/nvpmodel.conf") or "")
    return named[1] if named else f"nvpmodel {number}"


def _platform_profile(root: Path) -> str | None:
    """PCs whose firmware has profiles: ``low-power``, ``balanced``, ``performance``."""
    return read_text(root / "sys/firmware/acpi/platform_profile")


POWER_MODES: tuple[tuple[str, Callable[[Path], str | None]], ...] = (
    ("Jetson", _nvpmodel),
    ("PC", _platform_profile),
)


def read_power_mode(root: Path) -> str | None:
    """The first row's that has one."""
    return next((mode for _, read in POWER_MODES if (mode := read(root)) is not None), None)


def read_clock_cap(root: Path) -> str | None:
    """The most that each clock may be, each value once, and whether turbo is off: "cpu 1800+2400 MHz, gpu 1300 MHz"."""
    caps: dict[str, set[float]] = {}
    for _, sensor in find_files(root, kind=Kind.CAP):
        try:
            megahertz = sensor.measure()
        except (OSError, ValueError):
            continue
        caps.setdefault("cpu" if sensor.name.startswith("policy") else sensor.name, set()).add(megahertz)
    words = [f"{name} {'+'.join(f'{one:g}' for one in sorted(values))} MHz" for name, values in sorted(caps.items())]
    cpu = root / "sys/devices/system/cpu"
    if read_text(cpu / "intel_pstate/no_turbo") == "1" or read_text(cpu / "cpufreq/boost") == "0":
        words.append("turbo off")
    return ", ".join(words) or None
