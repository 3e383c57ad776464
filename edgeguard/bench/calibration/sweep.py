"""Which passes are timed: the shapes (k new tokens, p cached) that tell what every other one costs."""

from __future__ import annotations

from edgeguard.bench.worker_client import Passes, WorkerClient
from edgeguard.budget import PassTimes
from edgeguard.clock import NS_PER_S

SIZES = 8
LIMIT_NS = 600 * NS_PER_S


def time_passes(client: WorkerClient, passes: Passes, *, repeats: int) -> tuple[PassTimes, ...]:
    """Every size at every depth, each so many times, of one model of a worker that is ready."""
    sizes, depths = sweep_sizes(passes), sweep_depths(passes)
    return tuple(client.sweep(sizes=sizes, depths=depths, repeats=repeats, limit_ns=LIMIT_NS, rung=passes.rung))


def sweep_sizes(passes: Passes) -> list[int]:
    """From the smallest size that a plan can make to the largest, eight of them, evenly apart on a logarithmic scale.

    They are fewer where two come to the same; where there are but a few sizes they are those.
    """
    if passes.fixed_sizes:
        return list(passes.pass_sizes)
    low, high = passes.pass_sizes[0], passes.pass_sizes[-1]
    ratio = (high / low) ** (1 / (SIZES - 1))
    return sorted({round(low * ratio**index) for index in range(SIZES)})


def sweep_depths(passes: Passes) -> list[int]:
    """Half of the prefix, the prefix, and the deepest that the largest size fits behind: the slope in cached tokens.

    A cache that passes of fixed sizes fill has at least as many tokens as the largest.
    """
    least = passes.pass_sizes[-1] if passes.fixed_sizes else 1
    prefix, deepest = passes.prefix_tokens, passes.capacity_tokens - passes.pass_sizes[-1]
    return sorted({max(least, prefix // 2), prefix, max(prefix, deepest)})
