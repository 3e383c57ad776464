"""What this machine is, in words that can be compared: a measurement made on another one does not hold here.

Reads the files that Linux shows under ``root`` (``/`` in service, a made tree in tests), and nothing that needs a
privilege. A reading that is missing, unreadable or garbage is ``unknown``, never an error and never a guess: two
machines that both do not know are not told apart by it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from edgeguard.board.files import read_text
from edgeguard.board.nvml import find_nvml
from edgeguard.board.power_mode import read_clock_cap, read_power_mode

UNKNOWN = "unknown"


def read_fingerprint(
    *, root: Path = Path("/"), affinity: Collection[int] | None = None, architecture: str | None = None
) -> dict[str, str]:
    """The fingerprint of the machine under ``root``.

    ``affinity``: the cores this process may use, and ``architecture``; by default this process' own.
    """
    cores = os.sched_getaffinity(0) if affinity is None else affinity
    return {
        "machine": _machine(root) or UNKNOWN,
        "architecture": architecture or os.uname().machine,
        "cpu model": _cpu_model(root) or UNKNOWN,
        "cores": str(len(cores)),
        "cpu quota": _cpu_quota(root),
        "memory": _memory(root) or UNKNOWN,
        "kernel": read_text(root / "proc/sys/kernel/osrelease") or UNKNOWN,
        "governor": _governors(root) or UNKNOWN,
        "power mode": _power_mode(root) or UNKNOWN,
        "clock cap": read_clock_cap(root) or UNKNOWN,
    }


def _machine(root: Path) -> str | None:
    """The board's name: from the device tree (ARM boards), else the firmware's tables (PCs)."""
    model = read_text(root / "proc/device-tree/model")
    if model is not None:
        return model
    named = [read_text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")]
    return " ".join(name for name in named if name is not None) or None


def _cpu_model(root: Path) -> str | None:
    """x86 has a name; ARM has the codes of its designer and of the part (the same on every core that counts)."""
    entries = dict(_pairs(root / "proc/cpuinfo"))
    if "model name" in entries:
        return entries["model name"]
    codes = [f"{key[4:]} {entries[key]}" for key in ("CPU implementer", "CPU part") if key in entries]
    return ", ".join(codes) or None


def _memory(root: Path) -> str | None:
    """Rounded: what the kernel keeps for itself differs by some kilobytes from boot to boot."""
    total = re.fullmatch(r"(\d+) kB", dict(_pairs(root / "proc/meminfo")).get("MemTotal", ""))
    return f"{int(total[1]) / 2**20:.1f} GiB" if total else None


def _cpu_quota(root: Path) -> str:
    """The least quota of the control groups we are in, in cores; ``none`` when no group has one."""
    quotas = [quota for group in _control_groups(root) if (quota := _quota_of(group)) is not None]
    return f"{min(quotas):.2f} cores" if quotas else "none"


def _control_groups(root: Path) -> Iterator[Path]:
    """The folders of our control groups and of all above them (version 2, and version 1's cpu controller)."""
    for line in (read_text(root / "proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "" or "cpu" in controllers.split(","):
            top = root / "sys/fs/cgroup" / controllers
            group = top if ".." in path else top / path.strip("/")  # ".." is a group outside our namespace
            yield from (one for one in (group, *group.parents) if one.is_relative_to(top))


def _quota_of(group: Path) -> float | None:
    two = re.fullmatch(r"(\d+) (\d+)", read_text(group / "cpu.max") or "")
    if two:
        return int(two[1]) / max(1, int(two[2]))
    quota, period = (read_text(group / name) or "" for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    return int(quota) / max(1, int(period)) if quota.isdecimal() and period.isdecimal() else None


def _governors(root: Path) -> str | None:
    """Those of every cpufreq policy, each once."""
    policies = (root / "sys/devices/system/cpu/cpufreq").glob("policy*")
    values = {value for policy in policies if (value := read_text(policy / "scaling_governor")) is not None}
    return "+".join(value for value in sorted(values) if re.fullmatch(r"\w+", value)) or None


def _power_mode(root: Path) -> str | None:
    """The machine's, and the power limits of its NVIDIA GPUs, which only NVML knows, and of this machine only."""
    modes = [read_power_mode(root)]
    if root == Path("/") and (nvml := find_nvml()) is not None:
        modes.append(nvml.power_mode())
        nvml.close()
    return ", ".join(mode for mode in modes if mode is not None) or None


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    for line in (read_text(path) or "").splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            yield key.strip(), value.strip()
