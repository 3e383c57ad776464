"""The same examination as the service would see it: with its user, its limits and its sandbox, by ``systemd-run``.

The settings are those of the installed unit with its drop-ins, as ``systemctl cat`` shows them; the files are those of
its ``ExecStart=``. Needs root and a running systemd.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from edgeguard.errors import ConfigError, EdgeguardError

_NOT_FOR_A_LOOK = (
    *("Type", "NotifyAccess", "ExecStart", "ExecReload", "WatchdogSec", "Restart", "RestartSec"),
    *("RestartPreventExitStatus", "KillMode", "TimeoutStopSec", "TimeoutStartSec", "RuntimeDirectory"),
)
"""Of the service's life; and its runtime directory would be removed behind the examination, sockets and all."""

_STATE = "/var/lib"

_OF_A_RUN = {"--config": "", "--profile": "--profile", "--port": "--port", "--state-directory": "--state-directory"}
_OF_A_RUN |= {"--sockets": "--sockets", "--worker": "--worker"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What the other doctor printed, and its exit code."""

    code: int
    printed: str
    complaints: str


def examine_as_service(unit: str, more: Sequence[str]) -> Examination:
    """Run ``edgeguard doctor`` with ``more`` options as ``unit``; ``ConfigError`` when that is not installed.

    A oneshot unit whose output goes into files: that needs no message bus, which small boards may not have.
    """
    systemctl, runner = shutil.which("systemctl"), shutil.which("systemd-run")
    if systemctl is None or runner is None:
        raise EdgeguardError("--as-service needs systemd, which is not here: examine without it")
    shown = subprocess.run([systemctl, "cat", unit], capture_output=True, text=True, check=False)
    if shown.returncode:
        raise ConfigError(f"{unit} cannot be shown ({shown.stderr.strip()}): edgeguard install, and run this as root")
    settings = service_settings(shown.stdout)
    name = f"edgeguard-doctor-{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        files = {stream: Path(folder) / stream for stream in ("StandardOutput", "StandardError")}
        properties = [f"--property={stream}=truncate:{file}" for stream, file in files.items()]
        properties += [f"--property={key}={value}" for key, value in settings if key not in _NOT_FOR_A_LOOK]
        argv = [runner, f"--unit={name}", "--quiet", "--service-type=oneshot", *properties, "--"]
        done = subprocess.run([*argv, *_command(unit, settings), *more], capture_output=True, text=True, check=False)
        status = [systemctl, "show", name, "--property=ExecMainStatus", "--value"]
        code = subprocess.run(status, capture_output=True, text=True, check=False).stdout.strip()
        subprocess.run([systemctl, "reset-failed", name], capture_output=True, check=False)
        printed, complaints = (file.read_text() if file.exists() else "" for file in files.values())
    if done.returncode and not printed and not complaints:
        raise EdgeguardError(f"{unit}: systemd-run failed ({done.stderr.strip()}); run it as root: sudo")
    return Examination(code=int(code or 0), printed=printed, complaints=complaints)


def _command(unit: str, settings: Sequence[tuple[str, str]]) -> list[str]:
    start = [value for name, value in settings if name == "ExecStart" and value]
    if not start:
        raise ConfigError(f"{unit} starts nothing: edgeguard install")
    given: list[str] = []
    for name, option, top in (
        ("RuntimeDirectory", "--sockets", "/run"),
        ("StateDirectory", "--state-directory", _STATE),
    ):
        given += [word for key, value in settings if key == name for word in (option, f"{top}/{value}")]
    return doctors_command(start[-1], given=given)


def service_settings(text: str) -> list[tuple[str, str]]:
    """Name and value of every line of ``[Service]``, drop-ins included, in their order."""
    settings, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.strip() == "[Service]"
        name, equals, value = line.partition("=")
        if inside and equals and not line.startswith(("#", ";")):
            settings.append((name.strip(), value.strip()))
    return settings


def doctors_command(start: str, *, given: Sequence[str] = ()) -> list[str]:
    """``edgeguard run …`` of a unit as ``edgeguard doctor …`` with the same files."""
    executable, _, *words = shlex.split(start)
    command = [executable, "doctor"]
    taken: set[str] = set()
    for name, value in pairwise(words):
        if name in _OF_A_RUN:
            taken.add(name)
            command += [value] if not _OF_A_RUN[name] else [_OF_A_RUN[name], value]
    pairs = zip(given[::2], given[1::2], strict=True)
    return [*command, *(word for name, value in pairs if name not in taken for word in (name, value))]
