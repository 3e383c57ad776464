"""From what was sampled to the profile: before the requests with prices only, after them with its bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from edgeguard.bench.calibration.effort import Effort
from edgeguard.bench.calibration.journal import Priced
from edgeguard.bench.calibration.sampling import Tally
from edgeguard.bench.calibration.scoring import bounds_of, price_requests, provisional_bounds
from edgeguard.budget import Profile, Schedule, Soak
from edgeguard.clock import wall_time_iso
from edgeguard.config import Config


def wanted_percentile(config: Config, effort: Effort) -> float:
    """The one to name: what the accepted miss rate asks for, or what the effort aims at if that is less."""
    return min(1 - config.risk.max_miss_rate, effort.percentile)


def provisional_profile(config: Config, *, fingerprint: Mapping[str, str], priced: Priced) -> Profile:
    """Prices without bounds, for the workers that are to be sampled."""
    return Profile(
        kind="provisional",
        created=wall_time_iso(),
        fingerprint=fingerprint,
        schedule=Schedule(period_ns=config.timing.period_ns),
        bounds=provisional_bounds([rung.name for rung in config.rungs]),
        cost=priced.cost,
        sweep=priced.sweep,
        placement=priced.placement,
        others=priced.others,
        requests=(),
    )


def finished_profile(
    config: Config,
    *,
    fingerprint: Mapping[str, str],
    priced: Priced,
    effort: Effort,
    tally: Tally,
    soak: Soak | None,
    observed: bool,
    companion: str,
) -> Profile:
    """Scored and bounded; ``observed``: a sensor said how hot the board was. ``companion`` ran beside."""
    soaked_c = None if soak is None else soak.end_c
    observed = observed or any(one.look.temperature_c is not None for one in tally.kept)
    levels = [one.level(soaked_c=soaked_c, observed=observed) for one in tally.kept]
    requests = price_requests(tally.kept, priced.cost_of, levels=levels)
    bounds = bounds_of(requests, wanted=wanted_percentile(config, effort), confidence=config.risk.confidence)
    order = [rung.name for rung in config.rungs]
    return dataclasses.replace(
        provisional_profile(config, fingerprint=fingerprint, priced=priced),
        kind=effort.kind,
        schedule=Schedule(
            period_ns=config.timing.period_ns,
            skipped=tally.skipped,
            dropped=tally.dropped,
            busy=tally.busy,
            workers=max(1, len({one.worker for one in tally.kept})),
            beside=companion,
        ),
        bounds=tuple(sorted(bounds, key=lambda one: (one.level, order.index(one.rung), one.drafted))),
        requests=requests,
        thermal="observed" if observed else "unobserved",
        margin=effort.margin,
        soak=soak,
    )
