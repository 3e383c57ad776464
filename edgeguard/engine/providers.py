"""The table of execution providers: a row is everything that a new one costs.

A row names a provider, the package that brings it, and what the engine has to know about it. What no row says is the
same for all: explicit choice, no fallback, one KV cache bound once. Opens nothing and imports nothing slow.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgeguard.errors import ProviderError

HEAVY_OPERATORS = frozenset({"MatMul", "MatMulNBits", "GroupQueryAttention"})
"""Where the time of a pass goes. One of these on another provider than the one asked for is a silent fallback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One row.

    ``kv_types`` are the element types that its attention takes for the cache. ``smallest_pass`` is the fewest new
    tokens for which a pass gives the same bits as one that computes them among others.
    """

    name: str
    ort_name: str
    extra: str
    options: Mapping[str, str] = field(default_factory=dict)
    kv_device: str
    kv_types: tuple[str, ...]
    smallest_pass: int
    heavy_operators: frozenset[str] = HEAVY_OPERATORS


PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="cpu",
        ort_name="CPUExecutionProvider",
        extra="cpu",
        kv_device="cpu",
        kv_types=("tensor(float)", "tensor(float16)"),
        # With one row, MatMulNBits takes a kernel that sums in another order: up to 1.24 logits off at accuracy level
        # 4, 1e-4 at level 0. From two rows on, every way to split the same tokens gives the same bits (measured).
        smallest_pass=2,
    ),
)


def find_provider(name: str) -> Provider:
    """The row called ``name``; ``ProviderError`` names the known ones."""
    known = [row.name for row in PROVIDERS]
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise ProviderError(f"model.provider: there is no execution provider {name!r}; {hint}")
    return next(row for row in PROVIDERS if row.name == name)
