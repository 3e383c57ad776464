"""Calibration: a real worker, measured on this machine at the robot's own period, becomes a profile.

The phases: fingerprint; wait until the machine is quiet; start a worker, which warms up; sweep the sizes of its passes
at three depths of its cache; ask it a few whole requests, and fit the cost of a pass; then, of workers that know these
prices, whole requests until enough of them count as independent, each level shared among a few processes; heat the
board until it gets no hotter; the same again, hot; score, and bound every cell. What is measured is what the robot will
run: the real prompt, schema and prefix cache, varied observations, every request timed from its scheduled release to
its answer in our hands. How much of it: ``effort``. What has been sampled is on the disk at once (``journal``), and a
calibration that was interrupted goes on from there.

Times are nanoseconds; the clock is handed in and must be the machine's. Raises ``BusyError`` (the rules: ``sampling``),
``ProfileError`` when nothing can be written or resumed, ``ConfigError`` when the robot's own software ends, and
whatever kept the worker from starting. Whether the bound fits is for ``verdict`` to say.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeguard.bench.calibration.beside import beside
from edgeguard.bench.calibration.effort import QUICK, Effort
from edgeguard.bench.calibration.eye import BoardEye, Eye
from edgeguard.bench.calibration.journal import Journal, Measured, Progressed
from edgeguard.bench.calibration.pricing import price_models
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.bench.calibration.rig import Rig
from edgeguard.bench.calibration.sample import Sample
from edgeguard.bench.calibration.sampling import BLOCK_RELEASES, Sampler, Tally, wait_until_quiet
from edgeguard.bench.calibration.scoring import price_requests, still_needed
from edgeguard.bench.calibration.summary import finished_profile, provisional_profile, wanted_percentile
from edgeguard.bench.subject import Subject, model_subject
from edgeguard.board import FixedKernel, Thermometer, find_board, read_fingerprint
from edgeguard.budget import Profile
from edgeguard.budget.bound import floor_n
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.config import Config
from edgeguard.model.progress import Progress, silent


def calibrate(
    config: Config,
    *,
    clock: Clock,
    out: Path,
    effort: Effort = QUICK,
    resume: bool = False,
    companion: str | None = None,
    progress: Progress = silent,
    subject: Subject | None = None,
    eye: Eye | None = None,
) -> Profile:
    """Measure ``subject`` (by default the model of ``config``), and write the profile to ``out``.

    ``companion`` is the command line of what runs beside. ``resume``: go on with what an interrupted one had sampled.
    """
    subject = subject or model_subject(config, progress=progress)
    fingerprint = {**read_fingerprint(), **subject.identity()}
    journal = Journal.beside(out)
    what = Measured(fingerprint=fingerprint, kind=effort.kind, period_ns=config.timing.period_ns)
    done = journal.resume(what) if resume else Progressed()
    kernel = FixedKernel(clock=clock)
    progress("waiting for a quiet machine", 0, 1)
    wait_until_quiet(kernel, limit=effort.busy_limit)
    progress("waiting for a quiet machine", 1, 1)
    if not resume:
        journal.begin(what)
    with beside(companion, output=out.with_name(f"{out.name}.beside.log")) as running:
        rig = Rig(
            config=config,
            clock=clock,
            effort=effort,
            subject=subject,
            kernel=kernel,
            eye=eye or BoardEye(Thermometer(find_board(), clock=clock)),
            running=running,
            progress=progress,
        )
        bench = _Bench(config=config, clock=clock, effort=effort, rig=rig, journal=journal, done=done)
        profile = bench.measure(fingerprint)
    write_profile(profile, out)
    return profile


@dataclass(slots=True, kw_only=True)
class _Bench:
    """One calibration under way; ``done`` is what it has so far."""

    config: Config
    clock: Clock
    effort: Effort
    rig: Rig
    journal: Journal
    done: Progressed
    limit: float = 0.0

    def measure(self, fingerprint: Mapping[str, str]) -> Profile:
        """Every phase that is not done, then the profile."""
        rig, running = self.rig, self.rig.running
        self.limit = self.effort.busy_limit
        rig.workers = max((block.samples[0].worker for block in self.done.blocks), default=0)
        if running is not None:  # what it takes of the machine is the robot's own, and no disturbance
            self.limit *= max(1.0, rig.kernel.busy_factor(for_ns=NS_PER_S))
        if self.done.priced is None:
            self.done.priced = price_models(rig, limit=self.limit)
            self.journal.price(self.done.priced)
        rig.begun_ns = self.clock.now_ns() - self.done.elapsed_ns
        with tempfile.TemporaryDirectory(prefix="edgeguard-") as folder:
            prices = Path(folder) / "provisional.json"
            write_profile(provisional_profile(self.config, fingerprint=fingerprint, priced=self.done.priced), prices)
            if self.done.soak is None:
                self._sample("measuring", prices, soaked=False)
            if self.effort.soak_ns:
                self._soak(prices)
                self._sample("measuring hot", prices, soaked=True)
        return finished_profile(
            self.config,
            fingerprint=fingerprint,
            priced=self.done.priced,
            effort=self.effort,
            tally=self._tally(),
            soak=self.done.soak,
            observed=rig.eye.observed,
            companion="" if running is None else running.command,
        )

    def _soak(self, prices: Path) -> None:
        """Heat the board, unless that has been done; what has cooled since is heated again block by block."""
        if self.done.soak is None:
            with self.rig.worker(prices) as sampler:
                self.done.soak = self.rig.soaker().soak(sampler, limit_ns=self.effort.soak_ns)
            self.journal.soak(self.done.soak)

    def _sample(self, phase: str, prices: Path, *, soaked: bool) -> None:
        """Whole requests at one level, of one worker after the other, until enough of them count as independent."""
        tally, turns = self._tally(soaked=soaked), 0
        until_ns = self.clock.now_ns() + self.effort.limit_ns
        while (now_ns := self.clock.now_ns()) < until_ns:
            missing = self._missing(tally.kept)
            if missing == 0 and turns >= self.effort.workers:
                return
            turns_left = max(1, self.effort.workers - turns)
            turns += 1
            share = max(BLOCK_RELEASES, -(-missing // turns_left))
            with self.rig.worker(prices) as sampler:
                self._take_turn(
                    phase,
                    sampler,
                    tally,
                    count=len(tally.kept) + share,
                    until_ns=now_ns + (until_ns - now_ns) // turns_left,
                    soaked=soaked,
                )

    def _take_turn(
        self, phase: str, sampler: Sampler, tally: Tally, *, count: int, until_ns: int, soaked: bool
    ) -> None:
        """One worker's blocks, each on the disk before the next."""
        soaker = self.rig.soaker()
        while len(tally.kept) < count and self.clock.now_ns() < until_ns:
            self.rig.progress(phase, len(tally.kept), count)
            if soaked and self.done.soak is not None:
                soaker.keep_hot(sampler, self.done.soak)
            block = self.rig.block(sampler, soaked=soaked)
            self.journal.add(block)
            self.done.blocks.append(block)
            tally.add(block)
        self.rig.progress(phase, min(len(tally.kept), count), count)

    def _missing(self, samples: Sequence[Sample]) -> int:
        """How many requests are still to be made at this level."""
        confidence, wanted = self.config.risk.confidence, wanted_percentile(self.config, self.effort)
        if self.done.priced is None or not samples:
            return floor_n(percentile=wanted, confidence=confidence)
        requests = price_requests(samples, self.done.priced.cost_of)
        return still_needed(requests, wanted=wanted, confidence=confidence)

    def _tally(self, *, soaked: bool | None = None) -> Tally:
        """What is kept of all blocks, or of those before or after the soak."""
        tally = Tally(limit=self.limit)
        for block in self.done.blocks:
            if soaked is None or block.samples[0].soaked is soaked:
                tally.take(block)
        return tally
