"""The first part of a calibration: what passes cost, of every model, from a sweep and the first whole requests."""

from __future__ import annotations

from collections.abc import Sequence

from edgeguard.bench.calibration.journal import Priced
from edgeguard.bench.calibration.rig import Rig
from edgeguard.bench.calibration.sample import Sample
from edgeguard.bench.calibration.sampling import Tally
from edgeguard.bench.calibration.scoring import fit_cost
from edgeguard.bench.calibration.sweep import time_passes
from edgeguard.budget.cost import OtherModel


def price_models(rig: Rig, *, limit: float) -> Priced:
    """Of each model the sweep, and the cost that fits it and the first requests; those that were made while the fixed
    kernel was slower than ``limit`` times are dropped. ``BusyError`` when most of them are.
    """
    effort, tally = rig.effort, Tally(limit=limit)
    of_models = [tuple(rung.name for rung in one.rungs) for one in rig.config.by_model]
    with rig.start(None) as client:
        ready = client.wait_ready(progress=rig.progress)
        sweeps = []
        for done, passes in enumerate((ready, *ready.others)):
            rig.progress("timing passes", done, len(of_models))
            sweeps.append(time_passes(client, passes, repeats=effort.sweep_repeats))
        rig.progress("timing passes", len(of_models), len(of_models))
        sampler = rig.sampler(client)
        asked = 0
        while asked < effort.fit_requests:
            rig.progress("asking", asked, effort.fit_requests)
            tally.add(rig.block(sampler, soaked=False))
            asked = min(len(_of(tally.kept, rungs)) for rungs in of_models)
        rig.progress("asking", effort.fit_requests, effort.fit_requests)
    costs = [
        fit_cost(sweep, _of(tally.kept, rungs), stepped=passes.fixed_sizes)
        for passes, sweep, rungs in zip((ready, *ready.others), sweeps, of_models, strict=True)
    ]
    models = [OtherModel(rungs=r, cost=c, sweep=s) for r, c, s in zip(of_models, costs, sweeps, strict=True)]
    return Priced(sweep=sweeps[0], cost=costs[0], placement=ready.placement, others=tuple(models[1:]))


def _of(samples: Sequence[Sample], rungs: Sequence[str]) -> list[Sample]:
    """Those of one model, by the rungs that ask it."""
    return [sample for sample in samples if sample.rung in rungs]
