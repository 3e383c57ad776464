"""Does the bound hold on this machine? Calibration and check alternate in one run, so that both see the same machine.

    python calibration/coverage.py [CONFIG] [--blocks 20] [--json] [--out FILE.json]

Requests are made at the robot's period, in blocks of 100: one for calibration, one for the check, by turns (20 of each:
2,000 requests each, 14 minutes at 5 Hz). The bound of each cell comes from the first, as ``edgeguard calibrate`` makes
it; the second says how many of its requests were beyond. Violations are stated as a rate with an interval by block
bootstrap (blocks are drawn, not requests, because slow ones come in runs), beside the rate that the bound accepts; and
the bound over the quantile that the check observed. A machine that others compute on is no reason to stop here: its
busy factor is stated. Exit code 1: the accepted rate lies below the interval.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from importlib import resources
from itertools import count
from pathlib import Path
from typing import Any

from edgeguard.bench.calibration.effort import QUICK, SCENE
from edgeguard.bench.calibration.journal import Priced
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.bench.calibration.sample import Sample
from edgeguard.bench.calibration.sampling import Block, Sampler
from edgeguard.bench.calibration.scoring import bounds_of, by_cell, fit_cost, price_requests
from edgeguard.bench.calibration.summary import provisional_profile
from edgeguard.bench.calibration.sweep import time_passes
from edgeguard.bench.calibration.words import percentile_name
from edgeguard.bench.observations import draw_fields
from edgeguard.bench.percentile import percentile as percentile_of
from edgeguard.bench.subject import Subject, model_subject
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.board import FixedKernel
from edgeguard.budget import RequestTimes
from edgeguard.clock import NS_PER_S, SystemClock
from edgeguard.config import Config, load_config
from edgeguard.model.progress import silent

BLOCK = 100
RESAMPLES = 4_000
PERCENTILE = 0.99


class Course:
    """One run of a configuration's model."""

    def __init__(self, config: Config, subject: Subject) -> None:
        self.config = config
        self.subject = subject
        self.clock = SystemClock()
        self.kernel = FixedKernel(clock=self.clock)
        self.kernel.busy_factor(for_ns=2 * NS_PER_S)
        self.factors: list[float] = []
        self.seeds = count(1)

    def priced(self) -> Priced:
        with WorkerClient.start(
            argv=self.subject.command(self.config.file.absolute(), None), clock=self.clock
        ) as client:
            sweep = time_passes(client, client.wait_ready(progress=silent), repeats=QUICK.sweep_repeats)
            samples: list[Sample] = []
            sampler = self._sampler(client)
            while len(samples) < QUICK.fit_requests:
                samples += self._block(sampler).samples
        return Priced(sweep=tuple(sweep), cost=fit_cost(sweep, samples))

    @contextmanager
    def sampling(self, prices: Path):
        """A worker that knows the prices, as a function that asks it for one block of ``BLOCK`` requests."""
        argv = self.subject.command(self.config.file.absolute(), prices)
        with WorkerClient.start(argv=argv, clock=self.clock) as client:
            client.wait_ready(progress=silent)
            sampler = self._sampler(client)

            def block() -> list[Sample]:
                samples: list[Sample] = []
                while len(samples) < BLOCK:
                    samples += self._block(sampler).samples
                return samples

            yield block

    def _block(self, sampler: Sampler) -> Block:
        block = sampler.block()
        self.factors += [] if block.factor is None else [block.factor]
        return block

    def _sampler(self, client: WorkerClient) -> Sampler:
        seed = next(self.seeds)
        return Sampler(
            client=client,
            fields=draw_fields(self.config, seed=seed, scene=SCENE),
            period_ns=self.config.timing.period_ns,
            kernel=self.kernel,
            clock=self.clock,
            begun_ns=self.clock.now_ns(),
            seed=seed,
        )


def interval(blocks: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """The 95 % interval of violations over requests, blocks drawn with replacement."""
    draw = random.Random(1)
    rates = []
    for _ in range(RESAMPLES):
        drawn = draw.choices(blocks, k=len(blocks))
        rates.append(sum(late for late, _ in drawn) / max(1, sum(n for _, n in drawn)))
    rates.sort()
    return rates[round(0.025 * RESAMPLES)], rates[round(0.975 * RESAMPLES) - 1]


def judge(
    calibration: Sequence[RequestTimes], checks: Sequence[Sequence[RequestTimes]], *, wanted: float, confidence: float
) -> list[dict[str, Any]]:
    """Every cell's bound from ``calibration`` against the blocks of the check."""
    rows = []
    for bound in bounds_of(calibration, wanted=wanted, confidence=confidence):
        cell = (bound.level, bound.rung, bound.drafted)
        blocks = [[one.score for one in by_cell(block).get(cell, ())] for block in checks]
        scores = sorted(score for block in blocks for score in block)
        low, high = interval([(sum(one > bound.score for one in block), len(block)) for block in blocks])
        observed = percentile_of(scores, bound.percentile)
        rows.append(
            {
                "drafted": bound.drafted,
                "percentile": bound.percentile,
                "calibrated": bound.n,
                "effective_n": bound.effective_n,
                "checked": len(scores),
                "violations": sum(one > bound.score for one in scores),
                "rate": sum(one > bound.score for one in scores) / len(scores),
                "interval": [low, high],
                "accepted": 1 - bound.percentile,
                "bound_over_observed": bound.score / observed,
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = resources.files("edgeguard.demo").joinpath("demo.toml")
    parser.add_argument("config", nargs="?", type=Path, default=default, help="default: the demo's")
    parser.add_argument("--blocks", type=int, default=20, help="blocks of 100 requests on each side")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--out", type=Path, help="write the figures here, too")
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    course = Course(config, model_subject(config))
    priced = course.priced()
    sides: tuple[list[Sample], list[list[Sample]]] = ([], [])
    with tempfile.TemporaryDirectory() as folder:
        prices = Path(folder) / "prices.json"
        write_profile(provisional_profile(config, fingerprint={"prices": "only"}, priced=priced), prices)
        with course.sampling(prices) as block:
            for number in range(arguments.blocks):
                print(f"block {number + 1} of {arguments.blocks}", file=sys.stderr)
                sides[0].extend(block())
                sides[1].append(block())
    figures = {
        "busy": sorted(course.factors)[len(course.factors) // 2] if course.factors else None,
        "cells": judge(
            price_requests(sides[0], priced.cost),
            [price_requests(block, priced.cost) for block in sides[1]],
            wanted=PERCENTILE,
            confidence=config.risk.confidence,
        ),
    }
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if arguments.json:
        print(json.dumps(figures))
    else:
        _print(figures)
    return int(any(cell["interval"][0] > cell["accepted"] for cell in figures["cells"]))


def _print(figures: dict[str, Any]) -> None:
    for cell in figures["cells"]:
        low, high = cell["interval"]
        print(
            f"{'with a draft' if cell['drafted'] else 'without a draft':15}  {percentile_name(cell['percentile'])} of "
            f"{cell['calibrated']} requests ({cell['effective_n']} independent): {cell['violations']} of "
            f"{cell['checked']} beyond it, {cell['rate']:.2%} [{low:.2%}, {high:.2%}], accepted "
            f"{cell['accepted']:.2%}; bound / observed {cell['bound_over_observed']:.3f}"
        )
    print(f"busy x{figures['busy']:.2f}" if figures["busy"] else "busy: there was no gap to tell")


if __name__ == "__main__":
    sys.exit(main())
