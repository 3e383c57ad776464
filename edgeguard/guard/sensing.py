"""What an arriving observation is worth: usable, or which causes speak against it, field by field.

A stamp is never repaired: missing, zero or in the future it is a fault, never "now". A field must be there, of its
kind, finite, within its range, and young enough. What is wrong with one field takes only that field away from the
rules; what is wrong with the stamp takes everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgeguard.clock import ms_from_ns
from edgeguard.config.plant_sections import FieldSpec
from edgeguard.guard.rules import number
from edgeguard.guard.settings import Settings
from edgeguard.guard.words import normalise
from edgeguard.types import Cause, Observation, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong. ``field`` is ``None`` when it is the whole observation."""

    cause: Cause
    detail: str
    field: str | None = None


def examine(observation: Observation, *, settings: Settings, now_ns: int) -> list[Finding]:
    """Everything that is wrong with ``observation`` on its arrival at ``now_ns``; empty: it is good."""
    if not stamped(observation, now_ns):
        return [Finding(cause=Cause.BAD_STAMP, detail=f"captured_ns = {observation.captured_ns}, and now is {now_ns}")]
    age_ns = observation.age_ns(now_ns)
    if age_ns > settings.max_age_ns:
        detail = f"{ms_from_ns(age_ns):.1f} ms old, max_age_ms is {ms_from_ns(settings.max_age_ns):g}"
        return [Finding(cause=Cause.STALE_OBSERVATION, detail=detail)]
    return [finding for spec in settings.fields if (finding := _examine_field(observation, spec, settings, now_ns))]


def stamped(observation: Observation, now_ns: int) -> bool:
    """Whether the time of capture can be one of this machine's monotonic clock."""
    return isinstance(observation.captured_ns, int) and 0 < observation.captured_ns <= now_ns


def stop_word(observation: Observation, *, settings: Settings) -> str | None:
    """The operator's word *stop* among the fields, however old or faulty the rest is."""
    for name, words in settings.stop_words.items():
        said = observation.fields.get(name)
        if isinstance(said, str) and normalise(said) in words:
            return f"{name} says {said[:40]!r}"
    return None


def causes_of(findings: Sequence[Finding]) -> dict[Cause, str]:
    """The findings by cause, each with all its details."""
    details: dict[Cause, list[str]] = {}
    for finding in findings:
        details.setdefault(finding.cause, []).append(finding.detail)
    return {cause: ", ".join(parts) for cause, parts in details.items()}


def _examine_field(observation: Observation, spec: FieldSpec, settings: Settings, now_ns: int) -> Finding | None:
    problem = _problem(observation.fields.get(spec.name), spec)
    if problem is not None:
        return Finding(cause=Cause.MISSING_FIELD, detail=f"{spec.name} {problem}", field=spec.name)
    older_ns = observation.ages_ns.get(spec.name, 0)
    if older_ns < 0:
        detail = f"{spec.name} is said to be {ms_from_ns(-older_ns):.1f} ms younger than its observation"
        return Finding(cause=Cause.BAD_STAMP, detail=detail, field=spec.name)
    age_ns = observation.age_ns(now_ns, spec.name)
    limit_ns = settings.max_age_ns if spec.max_age_ns is None else spec.max_age_ns
    if age_ns > limit_ns:
        detail = f"{spec.name} is {ms_from_ns(age_ns):.1f} ms old, its max_age_ms is {ms_from_ns(limit_ns):g}"
        return Finding(cause=Cause.STALE_OBSERVATION, detail=detail, field=spec.name)
    return None


def _problem(value: Value, spec: FieldSpec) -> str | None:
    """Why ``value`` is no reading of the field; ``None`` when it is one."""
    if value is None:
        return "has no reading"
    if spec.kind == "flag":
        return None if isinstance(value, bool) else f"is {type(value).__name__}, not true or false"
    if spec.kind == "text":
        if not isinstance(value, str):
            return f"is {type(value).__name__}, not a text"
        return None if len(value) <= spec.max_chars else f"has {len(value)} characters, max_chars is {spec.max_chars}"
    reading = number(value)
    if reading is None:
        return f"is no finite number ({value if isinstance(value, float) else type(value).__name__})"
    if (spec.low is not None and reading < spec.low) or (spec.high is not None and reading > spec.high):
        return f"= {reading:g} is out of its range"
    return None
