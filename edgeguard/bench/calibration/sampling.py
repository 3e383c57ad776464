"""Whole requests on the robot's own schedule: released at fixed times, timed from the *scheduled* release.

A request that was still running at the next release delays the one behind it, and that delay counts (no coordinated
omission). Releases that passed meanwhile are skipped, because in service the newest observation wins; they are counted.
Which plan a request runs, and whether it may use a draft, is drawn by lot, so that every cell meets every state of the
machine.

In the gaps the board is looked at and the fixed kernel is timed, and the rule about a busy machine is made before any
latency is looked at: the requests of a block (ten releases) in whose gaps the kernel's mean factor was above the limit
are dropped, unless the board itself says that the silicon was slowing itself; when more than half of all blocks are,
from the tenth on, the machine is too busy to measure: ``BusyError``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from edgeguard.bench.asking import Asked, ask
from edgeguard.bench.calibration.effort import BUSY_LIMIT
from edgeguard.bench.calibration.sample import Look, Sample
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.board import FixedKernel
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_MS, NS_PER_S, Clock
from edgeguard.errors import BusyError
from edgeguard.types import Value

BLOCK_RELEASES = 10
BLOCKS_BEFORE_VERDICT = 10
KERNEL_NS = 12 * NS_PER_MS
LOOK_NS = 10 * NS_PER_MS  # for the board's sensors
MARGIN_NS = 15 * NS_PER_MS  # the gap left before the next release, so that neither ever delays it


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Ten releases. ``factor`` is the kernel's between them, ``None`` when there was no gap to time it in."""

    samples: tuple[Sample, ...]
    skipped: int
    factor: float | None

    def busy(self, limit: float) -> bool:
        """Whether somebody else was computing. A kernel that is slow because the silicon is says nothing about that."""
        if any(sample.throttled for sample in self.samples):
            return False
        return self.factor is not None and self.factor > limit


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run has gathered so far."""

    limit: float = BUSY_LIMIT
    kept: list[Sample] = field(default_factory=list)
    skipped: int = 0
    dropped: int = 0
    blocks: int = 0
    blocks_dropped: int = 0
    factors: list[float] = field(default_factory=list)  # the kernel's, of the blocks that were kept

    @property
    def busy(self) -> float:
        return median(self.factors) if self.factors else 1.0

    def take(self, block: Block) -> bool:
        """Keep a block, or drop it by the kernel alone; whether it was kept."""
        self.skipped += block.skipped
        if block.busy(self.limit):
            self.dropped += len(block.samples)
            return False
        self.kept += block.samples
        self.factors += [] if block.factor is None else [block.factor]
        return True

    def add(self, block: Block) -> None:
        """``take`` a block that has just been made; ``BusyError`` when most of those are dropped."""
        self.blocks += 1
        self.blocks_dropped += not self.take(block)
        if self.blocks >= BLOCKS_BEFORE_VERDICT and 2 * self.blocks_dropped > self.blocks:
            raise BusyError(
                "the machine is too busy to measure: a fixed piece of work took more than "
                f"{self.limit:.2g} times what it needs in {self.blocks_dropped} of {self.blocks} blocks of requests, "
                f"the last time {block.factor or 0.0:.1f} times; end what else computes here, and try again"
            )


class Sampler:
    """Asks one worker, period after period. ``begun_ns`` is when the run began; samples count from there."""

    def __init__(
        self,
        *,
        client: WorkerClient,
        fields: Iterator[Mapping[str, Value]],
        period_ns: int,
        kernel: FixedKernel,
        clock: Clock,
        begun_ns: int,
        look: Callable[[], Look] = Look,
        worker: int = 0,
        seed: int = 1,
        rungs: Sequence[str] = ("",),
    ) -> None:
        self._client = client
        self._fields = fields
        self._period_ns = period_ns
        self._kernel = kernel
        self._clock = clock
        self._begun_ns = begun_ns
        self._look = look
        self._worker = worker
        self._lots = random.Random(seed)
        self._rungs = rungs
        self._seen = look()

    def block(self, *, soaked: bool = False) -> Block:
        """The next ten releases, the first of them a period from now."""
        samples: list[Sample] = []
        factors: list[float] = []
        skipped = 0
        release_ns = self._clock.now_ns() + self._period_ns
        for _ in range(BLOCK_RELEASES):
            self._clock.sleep_until_ns(release_ns)
            asked = self._ask(release_ns)
            samples.append(
                Sample.of(
                    asked.answer,
                    at_ns=release_ns - self._begun_ns,
                    latency_ns=asked.elapsed_ns,
                    look=self._seen,
                    soaked=soaked,
                    worker=self._worker,
                )
            )
            passed = max(0, self._clock.now_ns() - release_ns) // self._period_ns
            release_ns += max(1, passed) * self._period_ns
            skipped += max(0, passed - 1)
            factors += self._use_gap(release_ns)
        return Block(samples=tuple(samples), skipped=skipped, factor=sum(factors) / len(factors) if factors else None)

    def heat(self) -> int:
        """One request at once, whatever the schedule; its latency. It is for warming the board only."""
        return self._ask(self._clock.now_ns()).elapsed_ns

    def _use_gap(self, release_ns: int) -> list[float]:
        if release_ns - self._clock.now_ns() > LOOK_NS + MARGIN_NS:
            self._seen = self._look()
        if release_ns - self._clock.now_ns() > KERNEL_NS + MARGIN_NS:
            return [self._kernel.busy_factor(for_ns=KERNEL_NS)]
        return []

    def _ask(self, release_ns: int) -> Asked:
        may_draft = self._lots.random() < 0.5
        rung = self._lots.choice(self._rungs) if len(self._rungs) > 1 else self._rungs[0]
        fields = next(self._fields)
        return ask(self._client, fields, clock=self._clock, captured_ns=release_ns, may_draft=may_draft, rung=rung)


def wait_until_quiet(kernel: FixedKernel, *, limit: float = BUSY_LIMIT) -> float:
    """Time the kernel for up to ten seconds, until one whole second of it is below ``limit``; else ``BusyError``."""
    factors = []
    for _ in range(10):
        factors.append(kernel.busy_factor(for_ns=NS_PER_S))
        if factors[-1] <= limit:
            return factors[-1]
    raise BusyError(
        f"the machine is too busy to measure: for ten seconds a fixed piece of work took {min(factors):.1f} times what "
        f"it needs, or more (at most {limit:g} is accepted); end what else computes here, and try again"
    )
