"""Which passes there are: of any size, or of a few that are fixed, with a cache and a mask that are always as long.

A provider that compiles a graph for the shapes it sees would compile in the middle of a request when one is new, and
some run no graph whose shapes are open. For these a pass has one of a few sizes, each warmed up and measured: one of
fewer new tokens runs those just before them again. They are overwritten by themselves, so nothing that is not an
answer's ever enters the cache, and what a pass costs is what its size costs. Lengths are in tokens.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.layout import GENAI_CONFIG
from edgeguard.engine.provider import Provider
from edgeguard.errors import ModelError, PromptError

TILE = 32
"""Kernels take the tokens of a pass in tiles of so many. One that is left over alone is computed as a pass of one token
is, and its bits are others (seen with passes of 33, 65, 97 and 129 tokens of a model with small matrices, 1.32)."""


def input_shapes(folder: ModelFolder, *, new: int, past: int, total: int) -> dict[str, tuple[int, ...]]:
    """The shape of every input of a pass of ``new`` tokens over a cache of ``past``, with a mask over ``total``."""
    names = folder.names
    shapes: dict[str, tuple[int, ...]] = {names.input_ids: (1, new), names.attention_mask: (1, total)}
    if names.position_ids is not None:
        shapes[names.position_ids] = (1, new)
    for name, _ in names.cache(layers=folder.layers):
        shapes[name] = (1, folder.kv_heads, past, folder.head_size)
    return shapes


def same_bits(provider: Provider, folder: ModelFolder) -> bool:
    """Whether a pass gives the same bits however its tokens are split.

    Not where a plain graph's past is fixed: attention then sums rows with zeros in them, elsewhere in every pass.
    """
    return provider.same_bits and (provider.shapes == "any" or folder.shared_cache)


class PassSizes(Protocol):
    """How new tokens become passes."""

    def next_pass(self, k: int, *, cached: int) -> tuple[int, int]:
        """How many of ``k`` new tokens the next pass takes, and how many of those ``cached`` it runs again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnySize:
    """At least ``smallest`` and at most ``longest`` tokens, which are whole tiles, and never one alone behind those."""

    smallest: int
    longest: int

    def next_pass(self, k: int, *, cached: int) -> tuple[int, int]:
        """As many as it may have, but for the beginning of a cache that has nothing to run again."""
        if k > self.longest:
            return self.longest, 0
        missing = self._missing(k)
        return (self.smallest, 0) if cached < missing < k else (k, min(missing, cached))

    def _missing(self, k: int) -> int:
        """How many tokens more a pass of ``k`` needs for its bits to be those of any other pass."""
        if k < self.smallest:
            return self.smallest - k
        return max(0, self.smallest - k % TILE) if k % TILE else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedShapes:
    """The ``sizes`` that a pass may have, rising, and the ``capacity`` of the cache."""

    sizes: tuple[int, ...]
    capacity: int

    @classmethod
    def powers(
        cls, *, smallest: int, longest: int, prefixes: Sequence[int], capacity: int, context: int, single: bool
    ) -> FixedShapes:
        """Powers of two up to the first that ``longest`` new tokens fit in, or that one alone (``single``).

        None is longer than one of the ``prefixes``, so that there are always enough tokens to run again, and each fits
        behind all of them, in a cache of ``capacity`` or a little more.
        """
        shortest, deepest = min(prefixes), max(prefixes)
        if shortest < smallest:
            raise PromptError(
                f"the prompt's fixed part has {shortest} tokens, and a pass at least {smallest}; make it longer"
            )
        largest = smallest
        while largest < longest and 2 * largest <= min(shortest, context - deepest):
            largest *= 2
        sizes = [largest]
        while not single and sizes[0] > smallest:
            sizes.insert(0, sizes[0] // 2)
        return cls(sizes=tuple(sizes), capacity=max(capacity, deepest + largest))

    @property
    def largest(self) -> int:
        return self.sizes[-1]

    def next_pass(self, k: int, *, cached: int) -> tuple[int, int]:
        """The smallest size that they fit in, else the largest; at the beginning of a cache the next smaller one."""
        at = bisect.bisect_left(self.sizes, k)
        if at == len(self.sizes):
            return self.largest, 0
        again = self.sizes[at] - k
        if again <= cached:
            return k, again
        if at == 0:
            raise PromptError(f"{k} tokens behind {cached} are fewer than a pass has here, {self.sizes[0]}")
        return self.sizes[at - 1], 0

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.sizes))} of {self.capacity}"

    @staticmethod
    def require_positions(folder: ModelFolder) -> None:
        """``ModelError`` for a graph that takes the length of its past for the position of its new tokens."""
        told = folder.names.position_ids is not None or folder.config.name == GENAI_CONFIG  # ours counts by the mask
        if not folder.shared_cache and not told:
            raise ModelError(
                f"{folder.graph.path}: has no input position_ids, so that it counts positions by the length of its "
                "cache, which is fixed here; export it again, with a newer optimum"
            )

    def inputs(self, folder: ModelFolder, *, size: int) -> dict[str, tuple[int, ...]]:
        """The shape of every input of a pass of ``size`` tokens."""
        total = self.capacity if folder.shared_cache else self.capacity + size
        return input_shapes(folder, new=size, past=self.capacity, total=total)

    def range_options(self, folder: ModelFolder, provider: Provider) -> dict[str, str]:
        """What has the provider compile once, when the session opens, for every size that a pass has.

        In the words of ONNX Runtime's pages on TensorRT: ``input_ids:1x2,attention_mask:1x192,…``, where it has words
        for it. Its kernels are chosen for the largest size, whose passes are the dearest.
        """
        sizes = (self.sizes[0], self.largest, self.largest)
        return {
            option: ",".join(
                f"{name}:{'x'.join(map(str, shape))}" for name, shape in self.inputs(folder, size=size).items()
            )
            for option, size in zip(provider.range_options, sizes, strict=False)
        }

    def frozen(self, folder: ModelFolder) -> dict[str, int]:
        """What each named dimension of the graph's inputs is when every pass has the largest size."""
        found: dict[str, int] = {}
        for name, shape in self.inputs(folder, size=self.largest).items():
            dimensions = folder.graph.dimensions.get(name, ())
            if len(dimensions) != len(shape):
                raise ModelError(
                    f"{folder.graph.path}: its input {name} has no shape of {len(shape)} dimensions; build it again"
                )
            for dimension, value in zip(dimensions, shape, strict=True):
                if isinstance(dimension, str) and (not dimension or found.setdefault(dimension, value) != value):
                    raise ModelError(
                        f"{folder.graph.path}: the dimension {dimension!r} of {name} cannot be fixed at {value}: it "
                        "has no name, or another input's size; build the model again"
                    )
        return found
