"""What a profile says of its measurement, in words: the same ones in the verdict and in the report. Pure."""

from __future__ import annotations

import math

from edgeguard.budget import Bound, Schedule, Soak
from edgeguard.clock import NS_PER_S


def percentile_name(percentile: float) -> str:
    """``p99`` for 0.99."""
    return f"p{percentile * 100:.10g}"


def share_name(share: float) -> str:
    """``99%`` for 0.99, with as many digits as it has."""
    return f"{share * 100:.10g}%"


def duration(seconds: float) -> str:
    """A time span as people say it, rounded down: it stands behind *at most one in*."""
    for unit_s, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * unit_s:
            return f"{math.floor(seconds / unit_s)} {name}"
    return f"{math.floor(seconds)} s"


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
