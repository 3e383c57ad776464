"""The profile of this model on this machine: found if it has been measured, measured if it has not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeguard.bench.calibration.calibrate import calibrate
from edgeguard.bench.calibration.effort import QUICK, Effort
from edgeguard.bench.calibration.profile_store import cached_file
from edgeguard.bench.calibration.verdict import Verdict, judge, overhead_of
from edgeguard.bench.subject import Subject, model_subject
from edgeguard.board import read_fingerprint
from edgeguard.budget import Profile, load_profile
from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.errors import ProfileError
from edgeguard.model.progress import Progress, silent
from edgeguard.places import default_cache_dir


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A profile that fits, and where it is; ``fresh`` if it was measured just now."""

    file: Path
    verdict: Verdict
    fresh: bool


def load_or_calibrate(
    config: Config,
    *,
    clock: Clock,
    age_ns: int = 0,
    progress: Progress = silent,
    cache_dir: Path | None = None,
    subject: Subject | None = None,
    effort: Effort = QUICK,
) -> Calibration:
    """The cached profile of this fingerprint and period, or the quick calibration that makes it.

    Raises ``BoundError`` when the bound does not fit the deadline for observations ``age_ns`` old; the profile stays
    in the cache, because it is true whatever the deadline is. Raises whatever ``calibrate`` raises.
    """
    subject = subject or model_subject(config, progress=progress)
    fingerprint = {**read_fingerprint(), **subject.identity()}
    file = cached_file(fingerprint, period_ns=config.timing.period_ns, cache_dir=cache_dir or default_cache_dir())
    profile = _usable(file, config=config, fingerprint=fingerprint)
    fresh = profile is None
    if profile is None:
        profile = calibrate(config, clock=clock, out=file, effort=effort, progress=progress, subject=subject)
    verdict = judge(profile, config=config, overhead=overhead_of(config, age_ns=age_ns))
    verdict.require_fit()
    return Calibration(file=file, verdict=verdict, fresh=fresh)


def _usable(file: Path, *, config: Config, fingerprint: dict[str, str]) -> Profile | None:
    """What the cache has, if it was measured for this; a damaged file is measured again, for that is the remedy."""
    if not file.is_file():
        return None
    try:
        profile = load_profile(file)
    except ProfileError:
        return None
    fits = not profile.differences(fingerprint) and profile.confidence >= config.risk.confidence
    return profile if fits else None
