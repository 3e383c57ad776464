"""The inputs of a pass and its logits: where they lie, and how they come there and back.

On the host they are views of a few arrays, whose shapes change with every pass and whose memory does not. A pass that
is captured as a graph on the device is replayed with the addresses of its capture: then each size has inputs and logits
of its own in the device's memory, which are filled before the pass and fetched after it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeguard.engine.cache import ELEMENT_TYPES
from edgeguard.engine.layout import Names


class PassIo(ABC):
    """``binding`` is the session's. Positions count from the first token of the prompt."""

    def __init__(self, *, session: Any, names: Names, rows: int, capacity: int) -> None:
        self.binding = session.io_binding()
        self._names = names
        self._position_ids = np.arange(capacity, dtype=np.int64)
        self._constants = {name: np.array(value) for name, value in names.constants.items()}
        for name, value in self._constants.items():
            _bind_array(self.binding.bind_input, name, value, value.shape)
        (logits,) = (node for node in session.get_outputs() if node.name == names.logits)
        self._every = logits.shape[1] != 1
        count = capacity if self._every else 1
        self._logits: NDArray[Any] = np.zeros((1, count, rows), ELEMENT_TYPES[logits.type])

    @abstractmethod
    def bind(self, tokens: Sequence[int], *, p: int, mask: NDArray[np.int64]) -> None:
        """Bind the new ``tokens``, which stand behind ``p`` others, and the memory of their logits."""

    @abstractmethod
    def fetch(self, *, k: int, p: int) -> None:
        """The pass has run: have its logits on the host."""

    def logits(self, position: int) -> NDArray[Any]:
        """Of the token at ``position``, or of the last one if the graph has no others."""
        logits: NDArray[Any] = self._logits[0, position if self._every else 0]
        return logits


class HostIo(PassIo):
    """The arrays live as long as this, so the addresses that are bound stay theirs."""

    def __init__(self, *, session: Any, names: Names, rows: int, capacity: int) -> None:
        super().__init__(session=session, names=names, rows=rows, capacity=capacity)
        self._ids = np.zeros((1, capacity), np.int64)

    def bind(self, tokens: Sequence[int], *, p: int, mask: NDArray[np.int64]) -> None:
        """The beginnings of the arrays."""
        k, names, bind = len(tokens), self._names, self.binding.bind_input
        self._ids[0, :k] = tokens
        _bind_array(bind, names.input_ids, self._ids, (1, k))
        _bind_array(bind, names.attention_mask, mask, (1, len(mask)))
        if names.position_ids is not None:
            _bind_array(bind, names.position_ids, self._position_ids[p:], (1, k))
        rows = self._logits[0, p:] if self._every else self._logits[0]
        shape = (1, k if self._every else 1, self._logits.shape[-1])
        _bind_array(self.binding.bind_output, names.logits, rows, shape)

    def fetch(self, *, k: int, p: int) -> None:
        """They were written there."""


class DeviceIo(PassIo):
    """``OrtValue``s on ``device``, by the size of the pass."""

    def __init__(
        self, *, runtime: ModuleType, session: Any, names: Names, rows: int, capacity: int, device: str
    ) -> None:
        super().__init__(session=session, names=names, rows=rows, capacity=capacity)
        self._new = runtime.OrtValue.ortvalue_from_shape_and_type
        self._device = device
        self._values: dict[tuple[str, int], Any] = {}

    def bind(self, tokens: Sequence[int], *, p: int, mask: NDArray[np.int64]) -> None:
        """Copies to where this size was captured."""
        k, names = len(tokens), self._names
        inputs = {names.input_ids: np.array([tokens], np.int64), names.attention_mask: mask[None]}
        if names.position_ids is not None:
            inputs[names.position_ids] = self._position_ids[None, p : p + k]
        for name, content in inputs.items():
            value = self._value(name, k, content.shape, np.int64)
            value.update_inplace(np.ascontiguousarray(content))
            self.binding.bind_ortvalue_input(name, value)
        shape = (1, k if self._every else 1, self._logits.shape[-1])
        self.binding.bind_ortvalue_output(names.logits, self._value(names.logits, k, shape, self._logits.dtype.type))

    def fetch(self, *, k: int, p: int) -> None:
        """A copy, which waits for the device."""
        start = p if self._every else 0
        said = self._values[self._names.logits, k].numpy()
        self._logits[0, start : start + said.shape[1]] = said[0]

    def _value(self, name: str, k: int, shape: tuple[int, ...], kind: Any) -> Any:
        if (name, k) not in self._values:
            self._values[name, k] = self._new(shape, kind, self._device, 0)
        return self._values[name, k]


def _bind_array(bind: Callable[..., None], name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    """The beginning of ``array``, seen with ``shape``."""
    bind(name, "cpu", 0, array.dtype.type, shape, array.ctypes.data)
