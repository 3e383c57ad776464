"""The KV cache: memory for ``capacity`` tokens, allocated once, bound once as past and as present; and what is in it.

``GroupQueryAttention`` writes new keys and values behind the old ones in place, and reads as far as the mask says. So
going back to a prefix copies nothing: it is only a smaller length. Lengths are in tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.providers import Provider
from edgeguard.engine.tokens import common_length

ELEMENT_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class KvCache:
    """``tokens`` are those whose keys and values are in the memory, from the first on."""

    def __init__(
        self, *, runtime: ModuleType, session: Any, folder: ModelFolder, provider: Provider, capacity: int
    ) -> None:
        self.capacity = capacity
        self.tokens: list[int] = []
        self._names = folder.names.cache(layers=folder.layers)
        types = {node.name: ELEMENT_TYPES[node.type] for node in session.get_inputs() if node.type in ELEMENT_TYPES}
        shape = [1, folder.kv_heads, capacity, folder.head_size]
        # Not ortvalue_from_numpy: that borrows the array, and a forgotten one is read after it is freed.
        self._values = [
            runtime.OrtValue.ortvalue_from_shape_and_type(shape, types[past], provider.kv_device, 0)
            for past, _ in self._names
        ]

    def bind(self, binding: Any) -> None:
        """Bind each value as the past and as the present of its layer."""
        for (past, present), value in zip(self._names, self._values, strict=True):
            binding.bind_ortvalue_input(past, value)
            binding.bind_ortvalue_output(present, value)

    def __len__(self) -> int:
        return len(self.tokens)

    def rewind(self, length: int) -> None:
        """Forget all but the first ``length`` tokens."""
        del self.tokens[length:]

    def keep_common(self, sequence: Sequence[int]) -> None:
        """Forget what is not the beginning of ``sequence``."""
        self.rewind(common_length(self.tokens, sequence))
