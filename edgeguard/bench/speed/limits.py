"""How far a model's passes are from what the machine can do: the smallest one from memory, a large one from arithmetic.

What the machine reaches is measured with large products and long reads. The model's matrices are smaller: their
products are timed alone, too, so that what kernels of their size do not reach is told apart from what is no product.
Milliseconds, bytes, FLOP, per second. Raises what looking into the model raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgeguard.bench.speed.machine import measure_machine
from edgeguard.bench.speed.model_figures import model_figures
from edgeguard.bench.speed.own_products import own_matrices, products_ms
from edgeguard.clock import Clock
from edgeguard.model.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Two passes and the machine. ``small_products_ms`` and ``large_products_ms`` are what their 4-bit products take
    alone, with weights in a cache; 0 for a model without such.
    """

    small_tokens: int
    small_ms: float
    small_products_ms: float
    bytes_moved: float
    bandwidth: float
    large_tokens: int
    large_ms: float
    large_products_ms: float
    flop: float
    flops: float

    @property
    def per_token_ms(self) -> float:
        """What each token more costs."""
        return (self.large_ms - self.small_ms) / (self.large_tokens - self.small_tokens)

    @property
    def per_pass_ms(self) -> float:
        """What a pass costs beside its tokens: reading weights, starting operators."""
        return self.small_ms - self.small_tokens * self.per_token_ms

    @property
    def of_bandwidth(self) -> float:
        return self.bytes_moved / (self.small_ms / 1e3) / self.bandwidth

    @property
    def of_flops(self) -> float:
        return self.flop / (self.large_ms / 1e3) / self.flops


def measure_limits(
    folder: Path, *, passes_ms: Mapping[int, float], cached: int, rows: int, clock: Clock, progress: Progress
) -> Limits:
    """``passes_ms`` are what the smallest and a large pass take, by their tokens, behind so many ``cached`` ones; so
    many ``rows`` of the head are left.
    """
    (small, small_ms), (large, large_ms) = sorted(passes_ms.items())
    summary, figures = model_figures(folder)
    machine = measure_machine(clock=clock, accuracy_level=summary.accuracy_level, progress=progress)
    matrices = own_matrices(folder)
    own_ms = {
        tokens: products_ms(matrices, tokens=tokens, accuracy_level=summary.accuracy_level or 0, clock=clock)
        for tokens in (small, large)
    }
    weight_bytes = summary.bytes_with_head(rows)
    used = figures.parameters * weight_bytes / summary.bytes_per_pass  # a cut head is not multiplied either
    return Limits(
        small_tokens=small,
        small_ms=small_ms,
        small_products_ms=own_ms[small],
        bytes_moved=weight_bytes + cached * figures.kv_bytes_per_token,
        bandwidth=machine.bandwidth,
        large_tokens=large,
        large_ms=large_ms,
        large_products_ms=own_ms[large],
        flop=2 * used * large,
        flops=machine.useful_flops,
    )
