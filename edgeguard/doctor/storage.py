"""The state directory, the disk under the flight log, what becomes of the record, and the clocks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from edgeguard.clock import NS_PER_S, wall_time_iso
from edgeguard.doctor.finding import Finding, fail, ok, warn
from edgeguard.doctor.patient import Patient
from edgeguard.recorder.metrics_output import check_metrics
from edgeguard.recorder.rotation import FLIGHT_LOG
from edgeguard.runtime.latch import LATCH_FILE

GOOD_CLOCK_SOURCES = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page")
FIRST_YEAR = "2025"
"""Earlier than this edgeguard: a board without a battery for its clock, before it has heard of the time."""


def check_state(patient: Patient) -> Iterator[Finding]:
    """Writable, and not latched."""
    directory = patient.state_directory
    there = next(one for one in (directory, *directory.absolute().parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield fail(f"{directory} cannot be written: the guard would latch", f"make {there} this user's, or set another")
    elif (directory / LATCH_FILE).exists():
        yield warn(f"latched ({directory / LATCH_FILE})", "edgeguard rearm, when the robot may move again")
    else:
        yield ok(f"{directory} can be written; not latched")


def check_disk(patient: Patient) -> Iterator[Finding]:
    """Room for all files of the flight log."""
    directory, recording = patient.state_directory, patient.config.recording
    there = next(one for one in (directory, *directory.absolute().parents) if one.exists())
    held = sum(_size(file) for file in directory.glob(f"{FLIGHT_LOG}*")) if directory.is_dir() else 0
    room = shutil.disk_usage(there).free + held
    wanted = recording.files * recording.file_bytes
    said = f"{room / 1e6:,.0f} MB for a flight log of at most {wanted / 1e6:,.0f} MB"
    if room < recording.file_bytes:
        yield fail(said, "make room: nothing would be recorded for long")
    elif room < wanted:
        yield warn(said, "make room, or keep fewer files ([record] files, file_mb)")
    else:
        yield ok(said)


def check_record(patient: Patient) -> Iterator[Finding]:
    """What the running guard's recorder says, and the package that metrics need (``MissingExtraError``)."""
    check_metrics(patient.config.metrics)
    if patient.guard is None:
        yield ok("no guard runs here now")
    elif lost := patient.guard.counters.get("steps_unrecorded", 0):
        yield warn(f"{lost} steps are in no file: {patient.guard.recorder}", "is the disk full or slow?")
    else:
        yield ok(patient.guard.recorder)


def check_clock(patient: Patient) -> Iterator[Finding]:
    """The kernel's clock source, sleep, and the date."""
    source = patient.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source is not None and source not in GOOD_CLOCK_SOURCES:
        yield warn(f"clock source {source} is slow or coarse", "is there a better one in available_clocksource?")
    else:
        yield ok(f"clock source {source or 'not named'}")
    slept_s = (patient.clock.boottime_ns() - patient.clock.now_ns()) / NS_PER_S
    if slept_s > 1:
        yield warn(
            f"this machine has slept for {slept_s:,.0f} s since it started: asleep it guards nothing",
            "sudo systemctl mask sleep.target suspend.target",
        )
    if wall_time_iso() < FIRST_YEAR:
        yield warn(f"the date is {wall_time_iso()}", "set it, or run an NTP client: records are labelled with it")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # rotated just now
        return 0
