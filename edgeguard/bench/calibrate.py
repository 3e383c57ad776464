"""Calibration: a real worker, measured on this machine at the robot's own period, becomes a profile.

The phases: wait until the machine is quiet; start a worker; sweep the sizes of its passes; ask it a few whole requests
and fit the cost of a pass; start a fresh worker with these prices and ask it whole requests until enough of them count
as independent; score them; bound. What is measured is what the robot will run: the real prompt, schema and prefix
cache, varied observations, every request timed from its scheduled release to its answer in our hands.

Times are nanoseconds; the clock is handed in and must be the machine's. Raises ``BusyError`` (the rules are in
``edgeguard.bench.sampling``) and whatever kept the worker from starting. Whether the bound fits is
``edgeguard.bench.verdict``'s business.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from edgeguard.bench.observations import draw_fields
from edgeguard.bench.profile_store import write_profile
from edgeguard.bench.sampling import BUSY_LIMIT, Sampler, Samples, wait_until_quiet
from edgeguard.bench.scoring import bound_of, fit_cost, price_requests, provisional_bound, still_needed
from edgeguard.bench.subject import Subject, WorkerCommand, model_subject
from edgeguard.bench.worker_client import Ready, WorkerClient
from edgeguard.board import FixedKernel, read_fingerprint
from edgeguard.budget import PassCost, PassTimes, Profile, Schedule
from edgeguard.budget.bound import floor_n
from edgeguard.clock import NS_PER_S, Clock, wall_time_iso
from edgeguard.config import Config
from edgeguard.model.progress import Progress, silent
from edgeguard.types import Value

QUICK_PERCENTILE = 0.99
"""What the quick way aims at: 299 independent requests at 95 % confidence, a minute at 5 Hz."""

QUICK_LIMIT_NS = 300 * NS_PER_S
FULL_LIMIT_NS = 3_600 * NS_PER_S

SWEEP_SIZES = 8
SWEEP_REPEATS = 15
SWEEP_LIMIT_NS = 300 * NS_PER_S
FIT_REQUESTS = 40


def calibrate(
    config: Config,
    *,
    clock: Clock,
    quick: bool = True,
    out: Path | None = None,
    progress: Progress = silent,
    subject: Subject | None = None,
    busy_limit: float = BUSY_LIMIT,
    limit_ns: int | None = None,
) -> Profile:
    """Measure ``subject`` (by default the model of ``config``), and write the profile to ``out`` if given.

    ``quick``: until the p99 can be named, five minutes at most; else until ``max_miss_rate`` can, an hour at most.
    If the time is up before (``limit_ns`` is another one), the highest percentile that the independent requests support
    is named instead.
    """
    command = (subject or model_subject(config, progress=progress)).command
    bench = _Bench(config, clock=clock, progress=progress, command=command, busy_limit=busy_limit)
    fingerprint, sweep, cost = bench.measure_cost()
    accepted = 1 - config.risk.max_miss_rate
    aim = min(accepted, QUICK_PERCENTILE) if quick else accepted
    profile = Profile(
        kind="provisional",
        created=wall_time_iso(),
        fingerprint=fingerprint,
        schedule=Schedule(period_ns=config.timing.period_ns),
        bounds=(provisional_bound(),),
        cost=cost,
        sweep=tuple(sweep),
        requests=(),
    )
    samples = bench.measure_requests(
        profile,
        independent=floor_n(percentile=aim, confidence=config.risk.confidence),
        limit_ns=limit_ns or (QUICK_LIMIT_NS if quick else FULL_LIMIT_NS),
    )
    requests = price_requests(samples.kept, cost)
    profile = dataclasses.replace(
        profile,
        kind="quick" if quick else "full",
        schedule=Schedule(
            period_ns=config.timing.period_ns, skipped=samples.skipped, dropped=samples.dropped, busy=samples.busy
        ),
        bounds=(bound_of(requests, wanted=aim, confidence=config.risk.confidence),),
        requests=requests,
    )
    if out is not None:
        write_profile(profile, out)
    return profile


class _Bench:
    """What the two measuring phases share."""

    def __init__(
        self, config: Config, *, clock: Clock, progress: Progress, command: WorkerCommand, busy_limit: float
    ) -> None:
        self._config = config
        self._clock = clock
        self._progress = progress
        self._command = command
        self._busy_limit = busy_limit
        self._kernel = FixedKernel(clock=clock)
        self._fields: Iterator[Mapping[str, Value]] = draw_fields(config)

    def measure_cost(self) -> tuple[dict[str, str], list[PassTimes], PassCost]:
        """The fingerprint, the sweep and the cost that fits it and the first requests."""
        self._progress("waiting for a quiet machine", 0, 1)
        wait_until_quiet(self._kernel, limit=self._busy_limit)
        self._progress("waiting for a quiet machine", 1, 1)
        with self._start() as client:
            ready = client.wait_ready(progress=self._progress)
            self._progress("timing passes", 0, 1)
            sizes = sweep_sizes(ready)
            sweep = client.sweep(sizes=sizes, repeats=SWEEP_REPEATS, limit_ns=SWEEP_LIMIT_NS)
            self._progress("timing passes", 1, 1)
            sampler = self._sampler(client)
            sampler.run(
                count=FIT_REQUESTS,
                until_ns=self._clock.now_ns() + QUICK_LIMIT_NS,
                heard=lambda kept: self._progress("asking", min(kept, FIT_REQUESTS), FIT_REQUESTS),
            )
        return {**read_fingerprint(), **ready.identity}, sweep, fit_cost(sweep, sampler.samples.kept)

    def measure_requests(self, profile: Profile, *, independent: int, limit_ns: int) -> Samples:
        """Whole requests, of a worker that knows the prices, until so many of them count as independent."""
        with tempfile.TemporaryDirectory(prefix="edgeguard-") as folder:
            file = Path(folder) / "provisional.json"
            write_profile(profile, file)
            with self._start(file) as client:
                client.wait_ready(progress=self._progress)
                sampler = self._sampler(client)
                sample_independent(
                    sampler,
                    cost=profile.cost,
                    independent=independent,
                    until_ns=self._clock.now_ns() + limit_ns,
                    clock=self._clock,
                    progress=self._progress,
                )
                return sampler.samples

    def _start(self, profile: Path | None = None) -> WorkerClient:
        file = self._config.file.absolute()
        return WorkerClient.start(argv=self._command(file, profile), clock=self._clock)

    def _sampler(self, client: WorkerClient) -> Sampler:
        return Sampler(
            client=client,
            fields=self._fields,
            period_ns=self._config.timing.period_ns,
            kernel=self._kernel,
            clock=self._clock,
            busy_limit=self._busy_limit,
        )


def sample_independent(
    sampler: Sampler, *, cost: PassCost, independent: int, until_ns: int, clock: Clock, progress: Progress
) -> None:
    """Sample until so many requests count as independent, or the time is up."""
    kept, count = sampler.samples.kept, independent

    def heard(so_far: int) -> None:
        progress("measuring", min(so_far, count), count)

    while len(kept) < count and clock.now_ns() < until_ns:
        sampler.run(count=count, until_ns=until_ns, heard=heard)
        count = still_needed(price_requests(kept, cost), independent=independent)


def sweep_sizes(ready: Ready) -> list[int]:
    """From the smallest size that a plan can make to the largest, eight of them, evenly apart on a logarithmic scale.

    They are fewer where two come to the same.
    """
    low, high = ready.pass_sizes[0], ready.pass_sizes[-1]
    ratio = (high / low) ** (1 / (SWEEP_SIZES - 1))
    return sorted({round(low * ratio**index) for index in range(SWEEP_SIZES)})
