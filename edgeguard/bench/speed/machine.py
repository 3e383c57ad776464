"""What this machine can do at best: FLOP/s of a large matrix product, and bytes/s read from memory. With numpy.

Both are the best of several tries, because whatever else runs only makes them worse; so they are what is really reached
and need no utilisation. The product is float32 through numpy's BLAS, and for a quantised model one with 4-bit weights
too: the faster one counts. Reading is spread over as many threads as there are cores, from far more memory than any
cache holds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from edgeguard.bench.speed import quantised_product
from edgeguard.budget.roofline import Machine
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.model.progress import Progress, silent

GEMM_SIZES = (512, 1024, 2048)
READ_BYTES = 256 << 20
TRY_FOR_NS = NS_PER_S


def measure_machine(
    *,
    clock: Clock,
    accuracy_level: int | None = None,
    progress: Progress = silent,
    try_for_ns: int = TRY_FOR_NS,
) -> Machine:
    """F and W of this machine, each tried for so long. ``accuracy_level``: that of a quantised model's kernels."""
    products = [_product(size) for size in GEMM_SIZES]
    if accuracy_level is not None:
        products.append((quantised_product.FLOP, quantised_product.quantised_product(accuracy_level=accuracy_level)))
    steps = len(products) + 1
    flops = []
    for done, (flop, work) in enumerate(products):
        progress("measuring this machine", done, steps)
        flops.append(flop * NS_PER_S / best_ns(work, clock=clock, for_ns=try_for_ns // len(products)))
    progress("measuring this machine", steps - 1, steps)
    bandwidth = _read_bandwidth(clock=clock, for_ns=try_for_ns)
    progress("measuring this machine", steps, steps)
    return Machine(flops=max(flops), bandwidth=bandwidth)


def _product(size: int) -> tuple[int, Callable[[], object]]:
    """A float32 product, and its FLOP."""
    generator = np.random.default_rng(0)
    left, right = (generator.random((size, size), dtype=np.float32) for _ in range(2))
    into = np.empty_like(left)
    return 2 * size**3, lambda: np.matmul(left, right, out=into)


def _read_bandwidth(*, clock: Clock, for_ns: int) -> float:
    threads = len(os.sched_getaffinity(0))
    parts = np.array_split(np.ones(READ_BYTES, np.uint8), threads)
    with ThreadPoolExecutor(threads) as pool:

        def read() -> None:
            list(pool.map(np.bitwise_or.reduce, parts))  # without the GIL, and little else but reading

        return READ_BYTES * NS_PER_S / best_ns(read, clock=clock, for_ns=for_ns)


def best_ns(work: Callable[[], object], *, clock: Clock, for_ns: int) -> int:
    """The least time of one piece of work; the first is left out, for it touches the memory."""
    work()
    until_ns = clock.now_ns() + for_ns
    best_ns = None
    while best_ns is None or clock.now_ns() < until_ns:
        began_ns = clock.now_ns()
        work()
        elapsed_ns = max(1, clock.now_ns() - began_ns)
        best_ns = elapsed_ns if best_ns is None else min(best_ns, elapsed_ns)
    return best_ns
