"""Who holds a serial port: from ``/proc`` and from lock files, with the way out for the usual suspects.

Reads a link per open descriptor of every process, some milliseconds: for the start and for ``doctor``, never for the
guard's tick. Sees what it may: without privileges, other users' descriptors are hidden, and then nobody is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
LOCKS = (Path("/run/lock"), Path("/var/lock"))

_OTHER_ENDS = {"/dev/ptmx", "/dev/pts/ptmx"}
"""Whoever has one made a pseudo-terminal: it is the motor controller itself (a simulator, a sink), and no rival."""

_SUSPECTS = {
    "ModemManager": "it probes new ports for modems; systemd/60-edgeguard.rules tells it to leave this one alone",
    "brltty": "it takes serial adapters for Braille displays; systemctl mask --now brltty-udev.service, or remove it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process, and how it is known to hold the port."""

    pid: int
    name: str

    def __str__(self) -> str:
        way_out = _SUSPECTS.get(self.name)
        return f"{self.name} (process {self.pid})" + (f": {way_out}" if way_out else "")


def port_holders(port: str, *, proc: Path = PROC, locks: tuple[Path, ...] = LOCKS) -> tuple[Holder, ...]:
    """The processes that have ``port`` open, or have left a lock file for it and are alive; not this one."""
    device = os.path.realpath(port)
    pids = {*_openers(device, proc), *_lockers(Path(device).name, proc, locks)} - {os.getpid()}
    return tuple(Holder(pid=pid, name=_name(proc, pid)) for pid in sorted(pids))


def suspects_running(*, proc: Path = PROC) -> tuple[Holder, ...]:
    """The programs known to take serial ports, whether or not they have one now."""
    found = ((pid, _name(proc, pid)) for pid in _processes(proc))
    return tuple(Holder(pid=pid, name=name) for pid, name in found if name in _SUSPECTS)


def _openers(device: str, proc: Path) -> Iterator[int]:
    for pid in _processes(proc):
        held = set(_open_files(proc / str(pid) / "fd"))
        if device in held and not held & _OTHER_ENDS:
            yield pid


def _open_files(descriptors: Path) -> Iterator[str]:
    with suppress(OSError):  # the process has ended, or is not ours to look at
        for descriptor in descriptors.iterdir():
            with suppress(OSError):  # closed since
                yield str(descriptor.readlink())


def _lockers(name: str, proc: Path, locks: tuple[Path, ...]) -> Iterator[int]:
    """UUCP's lock files: ``LCK..ttyUSB0`` with the process' number as text."""
    for folder in locks:
        with suppress(OSError, ValueError, IndexError):
            pid = int((folder / f"LCK..{name}").read_text().split()[0])
            if (proc / str(pid)).exists():
                yield pid


def _processes(proc: Path) -> list[int]:
    return [int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal()]


def _name(proc: Path, pid: int) -> str:
    try:
        return (proc / str(pid) / "comm").read_text().strip()
    except OSError:
        return "a process that has ended"
