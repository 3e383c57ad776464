"""The KV cache: memory for ``capacity`` tokens, allocated once, and what is in it. Lengths are in tokens.

There are two kinds of graph. ``GroupQueryAttention`` writes new keys and values behind the old ones in one shared
buffer, and reads as far as the mask says: going back to a prefix copies nothing, it is only a smaller length. Plain
attention takes the past and gives a longer present: the two change places with every pass, and going back to a prefix
is a slice and a copy, made within the next pass and so in its price.

Where shapes are fixed the past is always as long as the capacity, and the mask says what of it counts. A shared buffer
is that anyhow. Of a plain graph's present only the new tokens are copied, to where the past ends; going back is free.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.provider import Provider
from edgeguard.engine.shapes import FixedShapes
from edgeguard.engine.tokens import common_length
from edgeguard.errors import ProviderError

ELEMENT_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class KvCache(ABC):
    """``tokens`` are those whose keys and values are in the memory, from the first on."""

    def __init__(self, *, capacity: int) -> None:
        self.capacity = capacity
        self.tokens: list[int] = []
        self._ones = np.ones(capacity, np.int64)

    def __len__(self) -> int:
        return len(self.tokens)

    @abstractmethod
    def bind(self, binding: Any, *, k: int) -> None:
        """Bind past and present for a pass of ``k`` new tokens."""

    def mask(self, *, k: int) -> NDArray[np.int64]:
        """Which of the positions that a pass of ``k`` new tokens sees are tokens; memory that stays where it is."""
        return self._ones[: len(self) + k]

    def extend(self, tokens: Sequence[int]) -> None:
        """The bound pass has run: its tokens are cached now."""
        self.tokens += tokens

    def rewind(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""
        del self.tokens[length:]

    def keep_common(self, sequence: Sequence[int]) -> None:
        """Forget what is not the beginning of ``sequence``."""
        self.rewind(common_length(self.tokens, sequence))


def make_cache(
    *,
    runtime: ModuleType,
    session: Any,
    folder: ModelFolder,
    provider: Provider,
    capacity: int,
    fixed: FixedShapes | None = None,
) -> KvCache:
    """The cache of the folder's kind of graph; ``ProviderError`` where the provider cannot have it."""
    names = folder.names.cache(layers=folder.layers)
    types = {node.name: ELEMENT_TYPES[node.type] for node in session.get_inputs() if node.type in ELEMENT_TYPES}
    kinds = [types[past] for past, _ in names]
    if folder.shared_cache:
        shape = [1, folder.kv_heads, capacity, folder.head_size]
        kind = SharedCache if fixed is None else FixedSharedCache
        return kind(runtime=runtime, names=names, kinds=kinds, shape=shape, device=provider.kv_device)
    if provider.kv_device != "cpu":
        raise ProviderError(
            f"{folder.graph.path}: its cache grows by copies on the CPU, and {provider.name} has its own in the memory "
            f"of {provider.kv_device!r}: take a graph with a shared cache ('edgeguard model build NAME' makes one)"
        )
    plain = GrowingCache if fixed is None else WindowCache
    return plain(names=names, kinds=kinds, heads=folder.kv_heads, capacity=capacity, head_size=folder.head_size)


class SharedCache(KvCache):
    """One buffer for each layer's keys, one for its values; past and present are the same memory."""

    def __init__(
        self, *, runtime: ModuleType, names: list[tuple[str, str]], kinds: list[Any], shape: list[int], device: str
    ) -> None:
        super().__init__(capacity=shape[2])
        self._names = names
        # Not ortvalue_from_numpy: that borrows the array, and a forgotten one is read after it is freed.
        self._values = [runtime.OrtValue.ortvalue_from_shape_and_type(shape, kind, device, 0) for kind in kinds]
        self._bound: Any = None

    def bind(self, binding: Any, *, k: int) -> None:  # noqa: ARG002 - the memory is the same for every pass
        """Once for each binding: neither memory nor shape changes."""
        if binding is self._bound:
            return
        for (past, present), value in zip(self._names, self._values, strict=True):
            binding.bind_ortvalue_input(past, value)
            binding.bind_ortvalue_output(present, value)
        self._bound = binding


class FixedSharedCache(SharedCache):
    """The same, and a mask that is always as long as the buffer."""

    def mask(self, *, k: int) -> NDArray[np.int64]:
        """Ones up to the last of the new tokens."""
        end = len(self) + k
        self._ones[:end] = 1
        self._ones[end:] = 0
        return self._ones


class GrowingCache(KvCache):
    """Two banks of memory: a pass reads the past from one and writes the longer present to the other."""

    def __init__(
        self, *, names: list[tuple[str, str]], kinds: list[Any], heads: int, capacity: int, head_size: int
    ) -> None:
        super().__init__(capacity=capacity)
        self._names = names
        self._heads, self._head_size = heads, head_size
        self._past = [np.zeros(heads * capacity * head_size, kind) for kind in kinds]
        self._present = [np.zeros_like(one) for one in self._past]
        self._held = 0  # the tokens in the past's memory; more than ``tokens`` after a rewind

    def bind(self, binding: Any, *, k: int) -> None:
        """The past as long as what is cached, the present ``k`` longer."""
        p = len(self.tokens)
        if p < self._held:
            self._shorten(p)
        before, after = ((1, self._heads, length, self._head_size) for length in (p, p + k))
        for (past, present), old, new in zip(self._names, self._past, self._present, strict=True):
            binding.bind_input(past, "cpu", 0, old.dtype.type, before, old.ctypes.data)
            binding.bind_output(present, "cpu", 0, new.dtype.type, after, new.ctypes.data)

    def extend(self, tokens: Sequence[int]) -> None:
        """What was the present is the past of the next pass."""
        super().extend(tokens)
        self._past, self._present = self._present, self._past
        self._held = len(self.tokens)

    def _shorten(self, length: int) -> None:
        """Heads come before tokens, so a shorter past lies elsewhere: copied to the other bank."""
        for old, new in zip(self._past, self._present, strict=True):
            np.copyto(self._seen(new, length), self._seen(old, self._held)[:, :length])
        self._past, self._present = self._present, self._past
        self._held = length

    def _seen(self, memory: NDArray[Any], length: int) -> NDArray[Any]:
        return memory[: self._heads * length * self._head_size].reshape(self._heads, length, self._head_size)


class WindowCache(KvCache):
    """A past of ``capacity`` tokens, of which the first are there, and a present that is ``k`` longer."""

    def __init__(
        self, *, names: list[tuple[str, str]], kinds: list[Any], heads: int, capacity: int, head_size: int
    ) -> None:
        super().__init__(capacity=capacity)
        self._names = names
        self._past = [np.zeros((1, heads, capacity, head_size), kind) for kind in kinds]
        self._present: dict[int, list[NDArray[Any]]] = {}  # by the size of the pass
        self._masks: dict[int, NDArray[np.int64]] = {}
        self._bound = 0

    def mask(self, *, k: int) -> NDArray[np.int64]:
        """Ones where the past has tokens, and for the new ones, which stand behind all of it."""
        if k not in self._masks:
            self._masks[k] = np.ones(self.capacity + k, np.int64)
        mask = self._masks[k]
        mask[: len(self)] = 1
        mask[len(self) : self.capacity] = 0
        return mask

    def bind(self, binding: Any, *, k: int) -> None:
        """The same past in every pass, a present for each size."""
        if k not in self._present:
            longer = [(1, past.shape[1], self.capacity + k, past.shape[3]) for past in self._past]
            self._present[k] = [np.zeros(shape, past.dtype) for shape, past in zip(longer, self._past, strict=True)]
        for (past, present), old, new in zip(self._names, self._past, self._present[k], strict=True):
            binding.bind_input(past, "cpu", 0, old.dtype.type, old.shape, old.ctypes.data)
            binding.bind_output(present, "cpu", 0, new.dtype.type, new.shape, new.ctypes.data)
        self._bound = k

    def extend(self, tokens: Sequence[int]) -> None:
        """The new tokens' keys and values, to where the past ended."""
        start, end = len(self), len(self) + len(tokens)
        for past, present in zip(self._past, self._present[self._bound], strict=True):
            past[:, :, start:end] = present[:, :, self.capacity :]
        super().extend(tokens)
