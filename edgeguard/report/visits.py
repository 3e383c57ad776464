"""What a calibration has visited, and what it has not: a bound says nothing about what was never seen.

Pure; words for people, from the profile alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from edgeguard.bench.calibration.words import (
    disturbed_words,
    duration,
    heating_words,
    load_words,
    percentile_name,
    worker_words,
)
from edgeguard.budget import Profile
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.types import ThermalLevel

Rows: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """Each a name and words: what was ``visited``, and what was ``missed`` with what that means in service."""

    visited: Rows
    missed: Rows


def visits_of(profile: Profile) -> Visits:
    return Visits(visited=tuple(_visited(profile)), missed=tuple(_missed(profile)))


def _visited(profile: Profile) -> list[tuple[str, str]]:
    requests, schedule = profile.requests, profile.schedule
    levels = Counter(one.level for one in requests)
    drafted = sum(one.drafted for one in requests)
    rungs = Counter(one.rung for one in requests)
    span_s = max((one.at_ns for one in requests), default=0) / NS_PER_S
    return [
        ("requests", f"{len(requests):,}, one every {ms_from_ns(schedule.period_ns):g} ms, over {duration(span_s)}"),
        ("thermal levels", _counts({level.label: levels[level] for level in sorted(levels)})),
        ("heating", heating_words(profile.soak)),
        ("temperature", _range([one.temperature_c for one in requests], "°C", "no sensor could be read")),
        ("clock", _range([one.clock_mhz for one in requests], "MHz", "it cannot be read here")),
        ("load", load_words(schedule)),
        ("other load", f"a fixed piece of work took {schedule.busy:.2f} times what it takes when nothing else runs"),
        ("model processes", worker_words(schedule)),
        ("new tokens", _range([float(one.first_tokens) for one in requests], "in the first pass", "not known")),
        ("drafts", f"{drafted:,} requests with one, {len(requests) - drafted:,} without"),
        *([("plans", _counts(rungs))] if any(rungs) else []),
    ]


def _missed(profile: Profile) -> list[tuple[str, str]]:
    schedule, soak = profile.schedule, profile.soak
    rows = [
        (f"level {level.label}", _never_words(profile))
        for level in ThermalLevel
        if not any(bound.level is level for bound in profile.bounds)
    ]
    if soak is None:
        rows.append(("the thermal limit", "the board was not heated; the margin stands for it"))
    elif not soak.reached:
        rows.append(("the thermal limit", "the board was heated, but had not become as hot as it gets"))
    if not schedule.beside:
        rows.append(("the robot's own load", "measured alone; calibrate --with COMMAND runs it beside"))
    if schedule.workers < 2:
        rows.append(("a restart", "one process of the model only; each maps its memory anew"))
    if schedule.dropped or schedule.skipped:
        rows.append(("disturbed times", disturbed_words(schedule)))
    weakest = min(bound.percentile for bound in profile.bounds)
    rows.append((f"beyond {percentile_name(weakest)}", "rarer requests than that are not bounded, only watched for"))
    rows.append(("other machines", "another board, power mode, clock cap, model or provider is refused"))
    return rows


def _never_words(profile: Profile) -> str:
    if profile.thermal == "unobserved":
        return "cannot be told from the others without a sensor: the worst that was measured holds at any time"
    return "no bound of its own: a harsher level's holds, and where there is none the guard acts at once"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def _range(values: Sequence[float | None], unit: str, nothing: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return nothing
    low, high = min(known), max(known)
    return f"{low:,.0f} {unit}" if low == high else f"{low:,.0f} to {high:,.0f} {unit}"
