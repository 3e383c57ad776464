"""Whole requests on the robot's own schedule: released at fixed times, timed from the *scheduled* release.

A request that was still running at the next release delays the one behind it, and that delay counts (no coordinated
omission). Releases that passed meanwhile are skipped, because in service the newest observation wins; they are counted.

In the gaps the fixed kernel is timed, and the rule about a busy machine is made before any latency is looked at: the
requests of a block (ten releases) in whose gaps the kernel's mean factor was above ``BUSY_LIMIT`` are dropped; when
more than half of all blocks are, from the tenth on, the machine is too busy to measure: ``BusyError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from edgeguard.bench.worker_client import Reply, WorkerClient
from edgeguard.board import FixedKernel
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_MS, NS_PER_S, Clock
from edgeguard.errors import BusyError, WorkerError
from edgeguard.types import Answer, Finish, Observation, Request, Value

BUSY_LIMIT = 1.5
"""Half as much again as the kernel needs: a machine at rest stays below 1.1, one busy process a core makes 2."""

BLOCK_RELEASES = 10
BLOCKS_BEFORE_VERDICT = 10
KERNEL_NS = 12 * NS_PER_MS
KERNEL_MARGIN_NS = 15 * NS_PER_MS  # the gap left before the next release, so that the kernel never delays it
PATIENCE_NS = 30 * NS_PER_S
"""For one answer: the limit of a broken worker, not of a slow one. None is cut off, for its time must be known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request: from its scheduled release to its answer in our hands."""

    latency_ns: int
    answer: Answer


@dataclass(slots=True, kw_only=True)
class Samples:
    """What a run has gathered so far."""

    kept: list[Sample] = field(default_factory=list)
    skipped: int = 0
    dropped: int = 0
    blocks: int = 0
    blocks_dropped: int = 0
    factors: list[float] = field(default_factory=list)  # the kernel's, of the blocks that were kept

    @property
    def busy(self) -> float:
        return median(self.factors) if self.factors else 1.0


class Sampler:
    """Asks one worker, period after period, and gathers ``samples``."""

    def __init__(
        self,
        *,
        client: WorkerClient,
        fields: Iterator[Mapping[str, Value]],
        period_ns: int,
        kernel: FixedKernel,
        clock: Clock,
        busy_limit: float = BUSY_LIMIT,
    ) -> None:
        self._client = client
        self._fields = fields
        self._period_ns = period_ns
        self._kernel = kernel
        self._clock = clock
        self._busy_limit = busy_limit
        self._requests = 0
        self.samples = Samples()

    def run(self, *, count: int, until_ns: int, heard: Callable[[int], None]) -> None:
        """Whole blocks until ``count`` samples are kept or the time is up; ``heard`` is told how many are."""
        samples = self.samples
        release_ns = self._clock.now_ns() + self._period_ns
        while len(samples.kept) < count and self._clock.now_ns() < until_ns:
            block, factors, release_ns = self._run_block(release_ns)
            self._judge(block, factors)
            heard(len(samples.kept))

    def _judge(self, block: list[Sample], factors: list[float]) -> None:
        """Keep a block or drop it, by the kernel alone."""
        samples = self.samples
        samples.blocks += 1
        factor = sum(factors) / len(factors) if factors else None
        if factor is None or factor <= self._busy_limit:
            samples.kept += block
            samples.factors += [] if factor is None else [factor]
            return
        samples.blocks_dropped += 1
        samples.dropped += len(block)
        if samples.blocks >= BLOCKS_BEFORE_VERDICT and 2 * samples.blocks_dropped > samples.blocks:
            raise BusyError(
                "the machine is too busy to measure: a fixed piece of work took more than "
                f"{self._busy_limit:g} times what it needs in {samples.blocks_dropped} of {samples.blocks} blocks of "
                f"requests, the last time {factor:.1f} times; end what else computes here, and calibrate again"
            )

    def _run_block(self, release_ns: int) -> tuple[list[Sample], list[float], int]:
        """The samples, the kernel's factors between them, and the next release."""
        block: list[Sample] = []
        factors: list[float] = []
        for _ in range(BLOCK_RELEASES):
            self._clock.sleep_until_ns(release_ns)
            reply = self._ask(release_ns)
            block.append(Sample(latency_ns=reply.received_ns - release_ns, answer=reply.answer))
            passed = max(0, self._clock.now_ns() - release_ns) // self._period_ns
            release_ns += max(1, passed) * self._period_ns
            self.samples.skipped += max(0, passed - 1)
            if release_ns - self._clock.now_ns() > KERNEL_NS + KERNEL_MARGIN_NS:
                factors.append(self._kernel.busy_factor(for_ns=KERNEL_NS))
        return block, factors, release_ns

    def _ask(self, release_ns: int) -> Reply:
        self._requests += 1
        request = Request(
            request_id=self._requests,
            epoch=0,
            observation=Observation(fields=next(self._fields), captured_ns=release_ns),
            answer_by_ns=release_ns + PATIENCE_NS,
            shadow=True,
        )
        reply = self._client.ask(request, admit=False, limit_ns=PATIENCE_NS)
        if reply.answer.finish is not Finish.COMPLETE or not reply.answer.passes:
            finish, detail = reply.answer.finish.value, reply.answer.detail or "no pass was made"
            raise WorkerError(f"the worker ended a request of the calibration with {finish!r}: {detail}")
        return reply


def wait_until_quiet(kernel: FixedKernel, *, limit: float = BUSY_LIMIT) -> float:
    """Time the kernel for up to ten seconds, until one whole second of it is below ``limit``; else ``BusyError``."""
    factors = []
    for _ in range(10):
        factors.append(kernel.busy_factor(for_ns=NS_PER_S))
        if factors[-1] <= limit:
            return factors[-1]
    raise BusyError(
        f"the machine is too busy to measure: for ten seconds a fixed piece of work took {min(factors):.1f} times what "
        f"it needs, or more (at most {limit:g} is accepted); end what else computes here, and calibrate again"
    )
