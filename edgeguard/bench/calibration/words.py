"""What a profile says of its measurement, in words: the same ones in the verdict and in the report. Pure."""

from __future__ import annotations

import math

from edgeguard.budget import Bound, Profile, Schedule, Soak
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.types import ThermalLevel

HEAVY_TAIL = 0.25
"""The shape from which a tail is called heavy: from 0.5 on it has no variance."""


def percentile_name(percentile: float) -> str:
    """``p99`` for 0.99."""
    return f"p{percentile * 100:.10g}"


def share_name(share: float) -> str:
    """``99%`` for 0.99, with as many digits as it has."""
    return f"{share * 100:.10g}%"


def ms(value_ns: int) -> str:
    """``21.4 ms``."""
    return f"{ms_from_ns(value_ns):.1f} ms"


def duration(seconds: float) -> str:
    """A time span as people say it, rounded down: it stands behind *at most one in*."""
    for unit_s, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit_s:
            return f"{math.floor(seconds / unit_s)} {name}"
    return f"{math.floor(seconds)} s"


def per_hour(count: float) -> str:
    """``1,180 per hour``: three digits that mean something, and no exponent."""
    return f"{count:,.0f} per hour" if count >= 100 else f"{count:.3g} per hour"


def cell_name(bound: Bound) -> str:
    """Which requests a bound is of: ``hot board, plan 'brief', with a draft``."""
    plan = [f"plan {bound.rung!r}"] if bound.rung else []
    return ", ".join([f"{bound.level.label} board", *plan, *(["with a draft"] if bound.drafted else [])])


def load_words(schedule: Schedule) -> str:
    """What ran beside the model."""
    return f"beside {schedule.beside!r}" if schedule.beside else "measured alone"


def worker_words(schedule: Schedule) -> str:
    """How many processes of the model were measured."""
    return "one worker" if schedule.workers == 1 else f"{schedule.workers} workers"


def disturbed_words(schedule: Schedule) -> str:
    """What was not counted, because others computed meanwhile."""
    return f"{schedule.dropped} requests dropped, {schedule.skipped} releases skipped"


def heating_words(soak: Soak | None) -> str:
    """How long and how far, by what, and whether that was the thermal limit."""
    if soak is None:
        return "not heated"
    flat = "temperature and latency" if soak.temperature_flat is not None else "latency"
    known = {"temperature": soak.temperature_flat, "latency": soak.latency_flat}
    short = [name for name, is_flat in known.items() if is_flat is False]
    end = f"{flat} flat" if soak.reached else f"{' and '.join(short)} still not flat: not the thermal limit"
    begun = "" if soak.start_c is None or soak.end_c is None else f" from {soak.start_c:.0f}"
    degrees = "" if soak.end_c is None else f"{begun} to {soak.end_c:.0f} °C"
    return f"heated for {duration(soak.elapsed_ns / NS_PER_S)}{degrees} ({soak.heater or 'the model itself'}), {end}"


def bound_words(bound: Bound) -> str:
    """A bound, what it is of and what it rests on."""
    return (
        f"{ms(bound.bound_ns)} for {share_name(bound.percentile)} of all requests, at {bound.confidence:.0%} "
        f"confidence: {cell_name(bound)} ({bound.n:,} requests, {bound.effective_n:,} independent)"
    )


def margin_words(profile: Profile) -> str:
    """By what the bounds are stretched, and why."""
    return (
        f"x{profile.margin:g}, in the bounds above and in service: a {profile.kind} calibration has not seen the "
        "thermal limit; without --quick there is none"
    )


def thermal_words(profile: Profile) -> str:
    """What was reached and what was not."""
    heated = heating_words(profile.soak)
    if profile.thermal == "unobserved":
        return f"unobserved, no sensor can be read here; {heated}"
    never = [level.label for level in ThermalLevel if level > profile.reached]
    return f"{heated}; reached {profile.reached.label}" + (f", never {' or '.join(never)}" if never else "")


def tail_words(profile: Profile) -> str:
    """A warning of a heavy tail, if there is one."""
    heavy = [
        bound.gpd_shape for bound in profile.bounds if bound.gpd_shape is not None and bound.gpd_shape > HEAVY_TAIL
    ]
    if not heavy:
        return ""
    return (
        f"heavy tail (shape {max(heavy):.2f}): the longest request is still to come; the bounds are not moved by this"
    )


def unbounded_words(profile: Profile) -> str:
    """Of requests that were too few, or too much alike in a row, for a bound of their own."""
    own = sum(bound.n for bound in profile.bounds)
    if own >= len(profile.requests):
        return ""
    return (
        f"{len(profile.requests) - own:,} requests support no bound of their own: too few, or slow ones came in long "
        "runs; with a draft or without, they run on the other way's bound where there is one"
    )
