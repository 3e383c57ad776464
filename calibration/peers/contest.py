"""Every system is asked every question of both streams, in an order that is drawn anew for each question.

A stream is asked in two blocks, the four of them shuffled; what is cached and what is drafted comes from the questions
before it, so the first of a block warm up and do not count: a system that learns has learned the other stream. Whoever
is not being asked is stopped. Behind every question of the unchanged command a pass of the observation and the answer,
of so many tokens as edgeguard has just run and kept, is timed in a worker of its own: the floor.

Before every turn a fixed piece of work is timed. Where it took too long on average over a question's turns, somebody
else was computing, and everybody's answer to that question is left out: a rule that looks at no latency. When that is
most of them, the machine is too busy to measure: ``BusyError``. Seeded.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from edgeguard.bench.calibration.effort import BUSY_LIMIT
from edgeguard.board import FixedKernel
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import BusyError
from edgeguard.model.progress import Progress
from edgeguard.types import Value
from peers.ours import Edgeguard
from peers.system import CLOCK, System, Timed
from peers.task import Question

SEED = 1
WARM_UP = 10
BLOCKS = 2
KERNEL_FIRST_NS, KERNEL_NS = 300 * NS_PER_MS, 12 * NS_PER_MS
REST_NS = 10 * NS_PER_MS
"""Between two systems, awake and asked, so that one's last threads are not in the other's time."""

UNCHANGED, CHANGED = "unchanged", "changed"


@dataclass(slots=True, kw_only=True)
class Contest:
    """``floors`` are milliseconds; ``dropped`` questions were asked while somebody else computed."""

    samples: list[Sample]
    floors: list[float]
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One answer of one system. ``at`` counts the questions of its stream."""

    system: str
    stream: str
    at: int
    elapsed_ms: float
    first_ms: float
    tokens: int
    passes: tuple[int, ...]
    values: Mapping[str, Value] | None


def needed(requests: int) -> int:
    """How many questions a stream must have for so many that count."""
    return requests + BLOCKS * WARM_UP


def hold(
    systems: Sequence[System],
    floor: Edgeguard,
    streams: Mapping[str, Sequence[Question]],
    *,
    progress: Progress,
    busy_limit: float = BUSY_LIMIT,
) -> Contest:
    """Ask everybody everything."""
    draw, kernel = random.Random(SEED), FixedKernel(clock=CLOCK)
    kernel.busy_factor(for_ns=KERNEL_FIRST_NS)
    held = Contest(samples=[], floors=[], dropped=0)
    blocks = [(stream, at) for stream in streams for at in range(BLOCKS)]
    draw.shuffle(blocks)
    total, done = sum(map(len, streams.values())), 0
    for one in (*systems, floor):
        one.pause()
    for stream, block in blocks:
        questions = streams[stream]
        size = len(questions) // BLOCKS
        for at in range(block * size, (block + 1) * size):
            samples, floors, factors = list[Sample](), list[float](), list[float]()
            for system in draw.sample(list(systems), len(systems)):
                factors.append(kernel.busy_factor(for_ns=KERNEL_NS))
                timed = _ask(system, questions[at])
                samples.append(_sample(system.name, stream, at, timed))
                if stream == UNCHANGED and isinstance(system, Edgeguard):
                    floors.append(_floor_ms(floor, timed.kept_tokens))
            done += 1
            progress("asking", done, total)
            if at - block * size < WARM_UP:
                continue
            if mean(factors) > busy_limit:
                held.dropped += 1
                continue
            held.samples += samples
            held.floors += floors
    counting = total - WARM_UP * len(blocks)
    if 2 * held.dropped > counting:
        raise BusyError(
            f"the machine is too busy to measure: {held.dropped} of {counting} questions had to be left out"
        )
    return held


def _ask(system: System, question: Question) -> Timed:
    system.resume()
    CLOCK.sleep_until_ns(CLOCK.now_ns() + REST_NS)
    timed = system.ask(question)
    system.pause()
    return timed


def _floor_ms(floor: Edgeguard, size: int) -> float:
    floor.resume()
    CLOCK.sleep_until_ns(CLOCK.now_ns() + REST_NS)
    elapsed_ms = floor.pass_ms(size)
    floor.pause()
    return elapsed_ms


def _sample(system: str, stream: str, at: int, timed: Timed) -> Sample:
    return Sample(
        system=system,
        stream=stream,
        at=at,
        elapsed_ms=timed.elapsed_ns / NS_PER_MS,
        first_ms=timed.first_ns / NS_PER_MS,
        tokens=timed.tokens,
        passes=timed.passes,
        values=timed.values,
    )
