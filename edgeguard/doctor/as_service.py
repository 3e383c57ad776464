"""The same examination as the service would see it: with its user, its limits and its sandbox, by ``systemd-run``.

The settings are those of the installed unit with its drop-ins, as ``systemctl cat`` shows them; the files are those of
its ``ExecStart=``. Needs root and a running systemd.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from itertools import pairwise

from edgeguard.errors import ConfigError, EdgeguardError

_NOT_FOR_A_LOOK = (
    *("Type", "NotifyAccess", "ExecStart", "ExecReload", "WatchdogSec", "Restart", "RestartSec"),
    *("RestartPreventExitStatus", "KillMode", "TimeoutStopSec", "TimeoutStartSec", "RuntimeDirectory"),
)
"""Of the service's life; and its runtime directory would be removed behind the examination, sockets and all."""

_OF_A_RUN = {"--config": "", "--profile": "--profile", "--port": "--port", "--state-directory": "--state-directory"}
_OF_A_RUN |= {"--sockets": "--sockets", "--worker": "--worker"}


def service_command(unit: str, more: Sequence[str]) -> list[str]:
    """The command line that examines as ``unit`` would; ``ConfigError`` when it is not installed."""
    systemctl, runner = shutil.which("systemctl"), shutil.which("systemd-run")
    if systemctl is None or runner is None:
        raise EdgeguardError("--as-service needs systemd, which is not here: examine without it")
    shown = subprocess.run([systemctl, "cat", unit], capture_output=True, text=True, check=False)
    if shown.returncode:
        raise ConfigError(f"{unit} is not installed here ({shown.stderr.strip()}): edgeguard install")
    settings = service_settings(shown.stdout)
    start = [value for name, value in settings if name == "ExecStart" and value]
    if not start:
        raise ConfigError(f"{unit} starts nothing: edgeguard install")
    properties = [f"--property={name}={value}" for name, value in settings if name not in _NOT_FOR_A_LOOK]
    state = next((value for name, value in settings if name == "StateDirectory"), None)
    sockets = next((value for name, value in settings if name == "RuntimeDirectory"), None)
    given = [] if sockets is None else ["--sockets", f"/run/{sockets}"]
    given += [] if state is None else ["--state-directory", f"/var/lib/{state}"]
    return [
        *(runner, "--pipe", "--wait", "--collect", "--quiet", "--service-type=exec", *properties, "--"),
        *doctors_command(start[-1], given=given),
        *more,
    ]


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
