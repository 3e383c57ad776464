"""Which passes are timed: the shapes (k new tokens, p cached) that tell what every other one costs."""

from __future__ import annotations

from edgeguard.bench.worker_client import Ready, WorkerClient
from edgeguard.budget import PassTimes
from edgeguard.clock import NS_PER_S

SIZES = 8
LIMIT_NS = 600 * NS_PER_S


def time_passes(client: WorkerClient, ready: Ready, *, repeats: int) -> list[PassTimes]:
    """Every size at every depth, each so many times, by a worker that is ready."""
    return client.sweep(sizes=sweep_sizes(ready), depths=sweep_depths(ready), repeats=repeats, limit_ns=LIMIT_NS)


def sweep_sizes(ready: Ready) -> list[int]:
    """From the smallest size that a plan can make to the largest, eight of them, evenly apart on a logarithmic scale.

    They are fewer where two come to the same.
    """
    low, high = ready.pass_sizes[0], ready.pass_sizes[-1]
    ratio = (high / low) ** (1 / (SIZES - 1))
    return sorted({round(low * ratio**index) for index in range(SIZES)})


def sweep_depths(ready: Ready) -> list[int]:
    """Half of the prefix, the prefix, and the deepest that the largest size fits behind: the slope in cached tokens."""
    deepest = ready.capacity_tokens - ready.pass_sizes[-1]
    return sorted({max(1, ready.prefix_tokens // 2), ready.prefix_tokens, max(ready.prefix_tokens, deepest)})
