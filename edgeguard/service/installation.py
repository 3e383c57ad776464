"""The files that make edgeguard a service of a machine: where each belongs, and what it says there.

The shipped ones name ``/opt/edgeguard/bin/edgeguard`` and the group ``dialout``; a machine that has edgeguard
elsewhere, or calls the group of its serial ports otherwise, gets them so. Nothing is written but by ``write``. What
only systemd can do is told as commands, never done.
"""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from edgeguard.errors import ConfigError, EdgeguardError

SHIPPED_EXECUTABLE = "/opt/edgeguard/bin/edgeguard"
CONFIGURATION = "etc/edgeguard/robot.toml"
CACHE = "/var/cache/edgeguard"

PLACES: Mapping[str, str] = MappingProxyType(
    {
        "edgeguard.service": "etc/systemd/system/edgeguard.service",
        "edgeguard@.service": "etc/systemd/system/edgeguard@.service",
        "edgeguard-calibrate.service": "etc/systemd/system/edgeguard-calibrate.service",
        "edgeguard.sysusers.conf": "etc/sysusers.d/edgeguard.conf",
        "60-edgeguard.rules": "etc/udev/rules.d/60-edgeguard.rules",
        "edgeguard.modules-load.conf": "etc/modules-load.d/edgeguard.conf",
    }
)
"""Below the root: the administrator's folders, which win over a distribution's below /usr/lib."""

HIDDEN_FROM_A_SERVICE = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""By ProtectHome= and PrivateTmp=."""

_PACKAGE = Path(__file__).parent
_IN_A_WHEEL, _IN_A_CHECKOUT = _PACKAGE / "systemd", _PACKAGE.parent.parent / "systemd"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledFile:
    """One file: where it goes, what it is to say, and what it says now (``None``: there is none)."""

    place: Path
    content: str
    present: str | None

    @property
    def state(self) -> Literal["new", "changed", "same"]:
        return "new" if self.present is None else "same" if self.present == self.content else "changed"

    def diff(self) -> list[str]:
        """What changes, as lines of a unified diff; empty when the file is new."""
        before = [] if self.present is None else self.present.splitlines()
        lines = difflib.unified_diff(before, self.content.splitlines(), lineterm="", n=0)
        return [] if self.present is None else [line for line in lines if not line.startswith(("---", "+++", "@@"))]

    def write(self) -> None:
        """``EdgeguardError`` when it cannot be written."""
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            self.place.write_text(self.content, encoding="utf-8")
            self.place.chmod(0o644)
        except OSError as error:
            raise EdgeguardError(f"{self.place}: cannot be written ({error.strerror}); run it as root: sudo") from error


def planned(*, root: Path, executable: Path, config: Path | None) -> list[InstalledFile]:
    """Every file of an installation below ``root`` that runs ``executable``; ``config`` becomes the robot's."""
    shipped = _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else _IN_A_CHECKOUT
    group, files = _port_group(root), []
    for name, where in PLACES.items():
        content = (shipped / name).read_text(encoding="utf-8").replace(SHIPPED_EXECUTABLE, str(executable))
        if name == "edgeguard.sysusers.conf":
            content = content.replace("m edgeguard dialout", f"m edgeguard {group}")
        files.append(_file(root / where, content))
    if config is not None:
        try:
            files.append(_file(root / CONFIGURATION, config.read_text(encoding="utf-8")))
        except OSError as error:
            raise ConfigError(f"{config}: cannot be read ({error.strerror})") from error
    return files


def unit_problems(files: list[InstalledFile], *, root: Path, executable: Path) -> list[str] | None:
    """What ``systemd-analyze verify`` says of the units; ``None`` where it is not installed.

    It looks for ``executable`` on this machine: one that is there below ``root``, in an image, is no problem.
    """
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        units = [Path(folder) / one.place.name for one in files if one.place.suffix == ".service"]
        for unit, one in zip(units, (one for one in files if one.place.suffix == ".service"), strict=True):
            unit.write_text(one.content, encoding="utf-8")
        done = subprocess.run([analyze, "verify", *map(str, units)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if folder in line or "edgeguard" in line]
    if os.access(root / executable.relative_to("/"), os.X_OK):
        said = [line for line in said if f"{executable} is not executable" not in line]
    return said if done.returncode else []


def next_steps(*, executable: Path, builds: Sequence[str], configured: bool) -> list[tuple[str, str]]:
    """The commands that make the files take effect, in their order, each with its reason. ``builds``: of its models."""
    return [
        ("sudo systemd-sysusers", "the user edgeguard, its groups"),
        ("sudo systemctl restart systemd-modules-load", "the drivers of serial ports"),
        ("sudo udevadm control --reload && sudo udevadm trigger", "the rules for the port"),
        ("sudo systemctl daemon-reload", "the units"),
        *([] if configured else [(f"sudo install -D -m 644 robot.toml /{CONFIGURATION}", "your configuration")]),
        (f"sudo install -d -o edgeguard -g edgeguard {CACHE}", "where the model is built"),
        *((f"sudo -u edgeguard EDGEGUARD_CACHE={CACHE} {executable} {build}", "fetch, build") for build in builds),
        ("sudo usermod -aG edgeguard,edgeguard-operator $USER", "you may feed it, and re-arm; log in again"),
        ("sudo systemctl start edgeguard-calibrate", "measure this board; one to three hours"),
        (f"sudo {executable} doctor --as-service", "what is still in the way"),
        ("sudo systemctl enable --now edgeguard", "guard, now and after every boot"),
    ]


def _file(place: Path, content: str) -> InstalledFile:
    try:
        present = place.read_text(encoding="utf-8") if place.is_file() else None
    except OSError as error:
        raise EdgeguardError(f"{place}: cannot be read ({error.strerror}); run it as root: sudo") from error
    return InstalledFile(place=place, content=content, present=present)


def _port_group(root: Path) -> str:
    """The group that serial ports belong to: ``dialout``, or ``uucp`` where there is no other."""
    try:
        names = [line.partition(":")[0] for line in (root / "etc/group").read_text(encoding="utf-8").splitlines()]
    except OSError:
        names = []
    return "uucp" if "uucp" in names and "dialout" not in names else "dialout"
