"""The table of checks, and the examination: every check in its order, whatever the others find.

A check is a function of the patient; an error on purpose inside it is a finding too, with the error's own words. Behind
a configuration that cannot be used no other check has anything to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from edgeguard.doctor.configuration import check_budget, check_configuration, check_guarantee
from edgeguard.doctor.finding import Finding, Level
from edgeguard.doctor.model import check_answer, check_model, check_profile
from edgeguard.doctor.patient import Patient
from edgeguard.doctor.port import check_latency_timer, check_port, check_rivals, check_round_trip
from edgeguard.doctor.storage import check_clock, check_disk, check_record, check_state
from edgeguard.doctor.system import (
    check_clocks,
    check_cores,
    check_heat,
    check_load,
    check_real_time,
)
from edgeguard.errors import EdgeguardError

Check: TypeAlias = Callable[[Patient], Iterator[Finding]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("configuration", check_configuration),
    ("model", check_model),
    ("profile", check_profile),
    ("answer", check_answer),
    ("budget", check_budget),
    ("cores", check_cores),
    ("real time", check_real_time),
    ("clocks", check_clocks),
    ("heat", check_heat),
    ("load", check_load),
    ("port", check_port),
    ("rivals", check_rivals),
    ("latency timer", check_latency_timer),
    ("round trip", check_round_trip),
    ("guarantee", check_guarantee),
    ("state", check_state),
    ("disk", check_disk),
    ("record", check_record),
    ("clock", check_clock),
)

_NEEDS: Mapping[Check, Check] = MappingProxyType(
    {check_answer: check_model, check_latency_timer: check_port, check_round_trip: check_port}
)
"""Behind a failure of the second, the first would only say it again."""


def examine(patient: Patient, *, checks: tuple[tuple[str, Check], ...] = CHECKS) -> Iterator[tuple[str, Finding]]:
    """Name and finding, as they are found. A home's path is not told."""
    failed: set[Check] = set()
    for name, check in checks:
        if patient.problems and check is not check_configuration:
            return
        if _NEEDS.get(check) in failed:
            continue
        for finding in _made(check, patient):
            if finding.level is Level.FAIL:
                failed.add(check)
            yield name, _discreet(finding)


def _made(check: Check, patient: Patient) -> Iterator[Finding]:
    try:
        yield from check(patient)
    except EdgeguardError as error:
        yield Finding(level=Level.FAIL, text=str(error))  # which names the way out


def _discreet(finding: Finding) -> Finding:
    """Without the name of a person, which is in a home's path; a service's home is no secret."""
    home = Path.home()
    if not any(home.is_relative_to(one) for one in ("/home", "/root")):
        return finding
    text, remedy = (one.replace(str(home), "~") for one in (finding.text, finding.remedy))
    return Finding(level=finding.level, text=text, remedy=remedy)
