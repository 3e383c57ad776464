"""The products of a model's 4-bit matrices alone, at their own sizes: what of a pass is arithmetic that must be done.

Each kind of matrix is timed by itself, over and over, so its weights lie in a cache. Milliseconds. Needs ``onnx``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from edgeguard.bench.speed.machine import best_ns
from edgeguard.bench.speed.quantised_product import quantised_product
from edgeguard.clock import NS_PER_MS, Clock
from edgeguard.engine.layout import read_layout

TRY_FOR_NS = 150 * NS_PER_MS

Matrix = tuple[int, int]
"""How many numbers go in, and how many come out."""


def own_matrices(folder: Path) -> Counter[Matrix]:
    """How often a pass multiplies by a 4-bit matrix of each size; the head, which is cut, is left out."""
    import onnx

    layout = read_layout(folder)
    graph = onnx.load(str(layout.graph.path), load_external_data=False).graph
    matrices: Counter[Matrix] = Counter()
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            attributes = {one.name: one.i for one in node.attribute}
            if attributes.get("bits", 4) == 4 and attributes["N"] != layout.vocabulary:
                matrices[attributes["K"], attributes["N"]] += 1
    return matrices


def products_ms(matrices: Counter[Matrix], *, tokens: int, accuracy_level: int, clock: Clock) -> float:
    """All of them once, for so many tokens."""
    total_ns = 0
    for (inner, columns), count in matrices.items():
        work = quantised_product(accuracy_level=accuracy_level, rows=tokens, inner=inner, columns=columns)
        total_ns += count * best_ns(work, clock=clock, for_ns=TRY_FOR_NS)
    return total_ns / NS_PER_MS
