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
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from edgeguard.bench.calibration.coverage import TURN, Coverage, check_bounds, write_coverage
from edgeguard.bench.calibration.effort import BUSY_LIMIT, QUICK, SCENE
from edgeguard.bench.calibration.journal import Journal, Measured, Priced, Progressed
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.bench.calibration.sample import Sample
from edgeguard.bench.calibration.sampling import BLOCK_RELEASES, Sampler
from edgeguard.bench.calibration.scoring import fit_cost, price_requests
from edgeguard.bench.calibration.summary import provisional_profile
from edgeguard.bench.calibration.sweep import time_passes
from edgeguard.bench.observations import draw_fields
from edgeguard.bench.subject import Subject, model_subject
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.board import FixedKernel, read_fingerprint
from edgeguard.budget.cost import median
from edgeguard.cli.calibrate import kept_when_ended
from edgeguard.cli.main import INTERRUPTED
from edgeguard.cli.progress import progress_bars
from edgeguard.clock import NS_PER_S, SystemClock, wall_time_iso
from edgeguard.config import Config, load_config
from edgeguard.errors import EdgeguardError
from edgeguard.model.progress import Progress

PERCENTILE = 0.99


class Course:
    """One run of a configuration's model; ``done`` is what it has so far, and every block is in ``journal`` at once."""

    def __init__(
        self, config: Config, *, subject: Subject, journal: Journal, done: Progressed, progress: Progress
    ) -> None:
        self.config = config
        self.subject = subject
        self.journal = journal
        self.done = done
        self.progress = progress
        self.clock = SystemClock()
        self.kernel = FixedKernel(clock=self.clock)
        self.worker = max((block.samples[0].worker for block in done.blocks), default=0)

    def run(self, requests: int) -> Coverage:
        """Until so many have been made; ``done`` ones count."""
        self.kernel.busy_factor(for_ns=2 * NS_PER_S)  # so that its best is known
        priced = self.done.priced = self.done.priced or self._price()
        began_ns = self.clock.now_ns() - self.done.elapsed_ns
        with tempfile.TemporaryDirectory() as folder:
            prices = Path(folder) / "prices.json"
            write_profile(provisional_profile(self.config, fingerprint={"prices": "only"}, priced=priced), prices)
            with self._sampler(prices, begun_ns=began_ns) as sampler:
                while (made := BLOCK_RELEASES * len(self.done.blocks)) < requests:
                    self.progress("calibration and check by turns", made, requests)
                    block = sampler.block()
                    self.journal.add(block)
                    self.done.blocks.append(block)
        samples = [sample for block in self.done.blocks for sample in block.samples]
        factors = [block.factor for block in self.done.blocks if block.factor is not None]
        return Coverage(
            created=wall_time_iso(),
            fingerprint={**read_fingerprint(), **self.subject.identity()},
            period_ns=self.config.timing.period_ns,
            blocks=len(self.done.blocks),
            disturbed=sum(block.busy(BUSY_LIMIT) for block in self.done.blocks),
            busy=median(factors) if factors else None,
            cells=check_bounds(
                price_requests(samples, priced.cost_of), wanted=PERCENTILE, confidence=self.config.risk.confidence
            ),
        )

    def _price(self) -> Priced:
        """The sweep, and the cost that fits it and the first requests, as a calibration does it."""
        self.progress("timing passes", 0, 1)
        with self._worker(None) as client:
            sweep = time_passes(client, client.wait_ready(progress=self.progress), repeats=QUICK.sweep_repeats)
            self.progress("timing passes", 1, 1)
            sampler = self._sampler_of(client, begun_ns=self.clock.now_ns())
            samples: list[Sample] = []
            while len(samples) < QUICK.fit_requests:
                samples += sampler.block().samples
        priced = Priced(sweep=tuple(sweep), cost=fit_cost(sweep, samples))
        self.journal.price(priced)
        return priced

    @contextlib.contextmanager
    def _sampler(self, prices: Path, *, begun_ns: int) -> Iterator[Sampler]:
        """Of a worker that knows the prices."""
        with self._worker(prices) as client:
            client.wait_ready(progress=self.progress)
            self.worker += 1
            yield self._sampler_of(client, begun_ns=begun_ns)

    def _worker(self, prices: Path | None) -> WorkerClient:
        return WorkerClient.start(argv=self.subject.command(self.config.file.absolute(), prices), clock=self.clock)

    def _sampler_of(self, client: WorkerClient, *, begun_ns: int) -> Sampler:
        return Sampler(
            client=client,
            fields=draw_fields(self.config, seed=1 + self.worker, scene=SCENE),
            period_ns=self.config.timing.period_ns,
            kernel=self.kernel,
            clock=self.clock,
            begun_ns=begun_ns,
            worker=self.worker,
            seed=1 + self.worker,
            rungs=[rung.name for rung in self.config.rungs],
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
        course = Course(config, subject=subject, journal=journal, done=done, progress=progress)
        with kept_when_ended(journal.file):
            return course.run(2 * TURN * arguments.turns)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = resources.files("edgeguard.demo").joinpath("demo.toml")
    parser.add_argument("config", nargs="?", type=Path, default=default, help="default: the demo's")
    parser.add_argument("--turns", type=int, default=20, metavar="N", help="of 100 requests, for each side")
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
