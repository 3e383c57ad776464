"""Does the bound hold on this machine? Calibration and check alternate in one run, so that both see the same machine.

    python calibration/coverage.py [CONFIG] [--turns 20] [--resume] [--json] [--out FILE.json] [--plot FILE.png]

Requests are made at the robot's period, with its idle gaps, in turns of 100: one for calibration, one for the check
(20 of each: 2,000 requests each, 14 minutes at 5 Hz). The bounds of p99 come from the first as ``edgeguard calibrate``
makes them, with a draft and without; of the second it is counted how many requests were beyond. That share is stated
with an interval by block bootstrap (turns are drawn, not requests, because slow ones come in runs), beside the share
that the bound accepts; then the bound over the percentile that the check observed: of scores, which is how tight the
statistics are, and as it is stated in service, for the dearest answer that the request could have had.

Nothing is dropped: a machine that others compute on is stated, with the blocks of ten requests that a calibration would
have dropped. What was sampled is beside the figures (FILE.samples.gz); after Ctrl-C, --resume goes on from there. The
figures are for ``edgeguard report PROFILE --coverage FILE.json``, too. Exit code 1: a bound does not hold.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from importlib import resources
from pathlib import Path

from edgeguard.bench.calibration.coverage import TURN, Coverage, check_bounds, write_coverage
from edgeguard.bench.calibration.effort import BUSY_LIMIT, QUICK
from edgeguard.bench.calibration.journal import Journal, Measured, Progressed
from edgeguard.bench.calibration.pricing import price_models
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.bench.calibration.rig import Rig
from edgeguard.bench.calibration.sampling import BLOCK_RELEASES
from edgeguard.bench.calibration.scoring import price_requests
from edgeguard.bench.calibration.summary import provisional_profile
from edgeguard.bench.subject import model_subject
from edgeguard.board import read_fingerprint
from edgeguard.budget.cost import median
from edgeguard.cli.calibrate import kept_when_ended
from edgeguard.cli.main import INTERRUPTED
from edgeguard.cli.progress import progress_bars
from edgeguard.clock import NS_PER_S, SystemClock, wall_time_iso
from edgeguard.config import load_config
from edgeguard.errors import EdgeguardError

PERCENTILE = 0.99
LEAST_TURNS = 5


def course(rig: Rig, *, requests: int, journal: Journal, done: Progressed) -> Coverage:
    """Ask until so many requests have been made, ``done`` ones counted; each block is in ``journal`` at once."""
    rig.kernel.busy_factor(for_ns=2 * NS_PER_S)  # so that its best is known
    rig.workers = max((block.samples[0].worker for block in done.blocks), default=0)
    if done.priced is None:
        done.priced = price_models(rig, limit=math.inf)
        journal.price(done.priced)
    rig.begun_ns = rig.clock.now_ns() - done.elapsed_ns
    with tempfile.TemporaryDirectory(prefix="edgeguard-") as folder:
        prices = Path(folder) / "prices.json"
        write_profile(provisional_profile(rig.config, fingerprint={"prices": "only"}, priced=done.priced), prices)
        with rig.worker(prices) as sampler:
            while (made := BLOCK_RELEASES * len(done.blocks)) < requests:
                rig.progress("calibration and check by turns", made, requests)
                block = sampler.block()
                journal.add(block)
                done.blocks.append(block)
    samples = [sample for block in done.blocks for sample in block.samples]
    factors = [block.factor for block in done.blocks if block.factor is not None]
    return Coverage(
        created=wall_time_iso(),
        fingerprint={**read_fingerprint(), **rig.subject.identity()},
        period_ns=rig.config.timing.period_ns,
        blocks=len(done.blocks),
        disturbed=sum(block.busy(BUSY_LIMIT) for block in done.blocks),
        busy=median(factors) if factors else None,
        cells=check_bounds(
            price_requests(samples, done.priced.cost_of), wanted=PERCENTILE, confidence=rig.config.risk.confidence
        ),
    )


def measure(arguments: argparse.Namespace) -> Coverage:
    config = load_config(arguments.config)
    journal = Journal.beside(arguments.out)
    with progress_bars() as progress:
        subject = model_subject(config, progress=progress)
        what = Measured(
            fingerprint={**read_fingerprint(), **subject.identity()},
            kind="coverage",
            period_ns=config.timing.period_ns,
        )
        done = journal.resume(what) if arguments.resume else Progressed()
        if not arguments.resume:
            journal.begin(what)
        rig = Rig.alone(config, subject=subject, effort=QUICK, clock=SystemClock(), progress=progress)
        with kept_when_ended(journal.file):
            return course(rig, requests=2 * TURN * arguments.turns, journal=journal, done=done)


def _turns(text: str) -> int:
    if not text.isdecimal() or int(text) < LEAST_TURNS:
        raise argparse.ArgumentTypeError(f"{text} is no number from {LEAST_TURNS} on, which an interval needs")
    return int(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = resources.files("edgeguard.demo").joinpath("demo.toml")
    parser.add_argument("config", nargs="?", type=Path, default=default, help="default: the demo's")
    parser.add_argument("--turns", type=_turns, default=20, metavar="N", help="of 100 requests, for each side")
    parser.add_argument("--out", type=Path, default=Path("coverage.json"), metavar="FILE.json", help="the figures")
    parser.add_argument("--resume", action="store_true", help="go on with what an interrupted run had sampled")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw them, too (or .svg, .pdf)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of words")
    arguments = parser.parse_args()
    try:
        coverage = measure(arguments)
        write_coverage(coverage, arguments.out)
        if arguments.plot is not None:
            from edgeguard.report.coverage_plot import save_coverage

            save_coverage(coverage, arguments.plot)
    except EdgeguardError as error:
        print(f"coverage: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    if arguments.json:
        print(json.dumps(coverage.document()))
    else:
        for name, words in coverage.rows():
            print(f"{name}: {words}")
    return 0 if coverage.holds else 1


if __name__ == "__main__":
    sys.exit(main())
