"""The configuration, what its link guarantees, and whether the time of one decision suffices with the ages measured."""

from __future__ import annotations

from collections.abc import Iterator

from edgeguard.bench.percentile import percentile
from edgeguard.budget.profile_json import load_profile
from edgeguard.clock import ms_from_ns
from edgeguard.doctor.finding import Finding, fail, ok, warn
from edgeguard.doctor.patient import Patient
from edgeguard.errors import FlightLogError
from edgeguard.recorder.follow import FlightFollower
from edgeguard.recorder.rotation import FLIGHT_LOG
from edgeguard.runtime.budget_line import budget_line
from edgeguard.runtime.serial_wire import wire_expiry, wire_guarantee
from edgeguard.types import CycleRecord


def check_configuration(patient: Patient) -> Iterator[Finding]:
    for problem in patient.problems:
        yield fail(problem, "edgeguard check says everything that is wrong with it")
    if not patient.problems:
        yield ok(f"{patient.config_file.name}: nothing is wrong with it (digest {patient.config.digest[:12]})")


def check_guarantee(patient: Patient) -> Iterator[Finding]:
    """What stops the robot when this computer dies."""
    said = f"{patient.config.link.codec}: {wire_guarantee(patient.config)}"
    if wire_expiry(patient.config) == "none":
        yield warn(said, "use a motor controller that ends a command by itself")
    else:
        yield ok(said)


def check_budget(patient: Patient) -> Iterator[Finding]:
    """With the oldest observations that were recorded, or the oldest that the configuration takes."""
    config = patient.config
    if patient.profile is None or not patient.profile.is_file():
        yield warn("not known: there is no profile", f"edgeguard calibrate {config.file}")
        return
    ages_ns = list(_recorded_ages(patient))
    age_ns = round(percentile(ages_ns, 0.99)) if ages_ns else config.timing.max_age_ns
    source = f"p99 of {len(ages_ns)} recorded" if ages_ns else "max_age_ms; none recorded yet"
    line = budget_line(config, age_ns=age_ns, bound_ns=load_profile(patient.profile).bound.bound_ns)
    assert line.slack_ms is not None
    assert line.bound_ms is not None
    said = (
        f"{line.deadline_ms:g} ms = age {line.age_ms:.1f} ({source}) + model {line.bound_ms:.1f} + "
        f"wire {line.wire_ms:.1f} + reserve {line.reserve_ms:.1f} + slack {line.slack_ms:.1f}"
    )
    fitting_ms = line.age_ms + line.slack_ms
    if line.slack_ms >= 0:
        yield ok(f"{said}; observations up to {fitting_ms:.0f} ms old fit")
    elif fitting_ms >= 0:
        yield fail(
            said,
            f"send observations at most {fitting_ms:.0f} ms old, or allow a deadline of "
            f"{line.deadline_ms - line.slack_ms:.0f} ms",
        )
    else:
        needed_ms = ms_from_ns(config.timing.deadline_ns) - line.slack_ms
        yield fail(said, f"no age would fit: a smaller model or schema, or a deadline of {needed_ms:.0f} ms")


def _recorded_ages(patient: Patient) -> Iterator[int]:
    try:
        follower = FlightFollower(patient.state_directory / FLIGHT_LOG)
    except FlightLogError:
        return
    try:
        for one in follower.read():
            if isinstance(one, CycleRecord) and one.budget is not None:
                yield one.budget.age_ns
    finally:
        follower.close()
