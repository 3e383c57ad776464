"""GGUF's weight blocks as the operands of ONNX Runtime's ``MatMulNBits``, without a second quantisation.

Every matrix has shape (N, K): N outputs, K inputs, as GGUF stores it. A block is 32 neighbouring elements of a row.

- Q4_0, Q8_0: ``w = d * (q - 8)`` and ``w = d * q`` are already what ``MatMulNBits`` computes; only the packing differs.
- Q4_1: ``w = d * q + m`` is ``d * (q - 8) + (m + 8 * d)``. The first term is a symmetric ``MatMulNBits``; the second is
  constant within a block, so its product with the input is ``(m + 8 * d)`` times the block's sum of the input. We
  call that second matrix, of shape (N, K / 32), the *carry*. Nothing is rounded, so the fidelity is the file's.
- F16, F32: dense, kept as they are.

A low-rank adapter (LoRA) is a third term, ``up @ down``, beside a quantised matrix, whose own weights stay what they
are; into a dense one it is added.

Block layouts: ggml's ``block_q4_0``, ``block_q4_1`` and ``block_q8_0`` (ggml-common.h); a block's low nibbles are its
elements 0 to 15 and the high nibbles 16 to 31, whereas ``MatMulNBits`` packs neighbours, the even one low.

A type is added by one row of the table below. Knows nothing of files and names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 32
_HALF = 2  # bytes of a float16


@dataclass(frozen=True, slots=True, kw_only=True)
class LowRank:
    """``up @ down``, float32 (N, r) and (r, K); the adapter's scale is in ``up``."""

    down: NDArray[np.float32]
    up: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """``w[n, 32 * b + i] = scales[n, b] * (q - 2 ** (bits - 1)) + carry[n, b]``, plus ``low_rank``.

    ``packed``: uint8 (N, K / 32, 4 * bits), as ``MatMulNBits`` packs it; ``scales`` and ``carry``: float32 (N, K / 32).
    """

    bits: int
    packed: NDArray[np.uint8]
    scales: NDArray[np.float32]
    carry: NDArray[np.float32] | None
    low_rank: LowRank | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        rows, blocks = self.scales.shape
        return rows, blocks * BLOCK

    def plus(self, low_rank: LowRank) -> Quantised:
        """The same matrix with the term beside it."""
        return replace(self, low_rank=low_rank)

    def take_rows(self, order: NDArray[np.int64]) -> Quantised:
        """The same matrix with its rows in another order."""
        return Quantised(
            bits=self.bits,
            packed=self.packed[order],
            scales=self.scales[order],
            carry=None if self.carry is None else self.carry[order],
            low_rank=None if self.low_rank is None else replace(self.low_rank, up=self.low_rank.up[order]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """``values``: float16 or float32 (N, K)."""

    values: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        rows, columns = self.values.shape
        return rows, columns

    def plus(self, low_rank: LowRank) -> Dense:
        """The sum, computed in float32 and rounded to the type of ``values``."""
        summed = self.values.astype(np.float32) + low_rank.up @ low_rank.down
        return Dense(values=_finite(summed.astype(self.values.dtype)))

    def take_rows(self, order: NDArray[np.int64]) -> Dense:
        """The same matrix with its rows in another order."""
        return Dense(values=self.values[order])


Matrix = Quantised | Dense


def from_gguf(*, type_name: str, data: NDArray[Any]) -> Matrix:
    """The matrix in ``data``: (N, bytes of a row) of uint8 for quantised types, (N, K) for the others.

    ``type_name`` is one of ``SUPPORTED_TYPES``. Raises ``ValueError`` if a value or a scale is not finite.
    """
    return _CONVERTERS[type_name](data)


def concatenate(matrices: list[Matrix]) -> Matrix | None:
    """One matrix whose outputs are those of ``matrices``, in order; None if they are not of one kind."""
    dense = [matrix for matrix in matrices if isinstance(matrix, Dense)]
    if len(dense) == len(matrices) and len({matrix.values.dtype for matrix in dense}) == 1:
        return Dense(values=np.concatenate([matrix.values for matrix in dense]))
    quantised = [matrix for matrix in matrices if isinstance(matrix, Quantised)]
    kinds = {(matrix.bits, matrix.carry is None) for matrix in quantised}
    if len(quantised) < len(matrices) or len(kinds) > 1:
        return None
    carries = [matrix.carry for matrix in quantised if matrix.carry is not None]
    return Quantised(
        bits=quantised[0].bits,
        packed=np.concatenate([matrix.packed for matrix in quantised]),
        scales=np.concatenate([matrix.scales for matrix in quantised]),
        carry=np.concatenate(carries) if carries else None,
        low_rank=_block_diagonal(quantised),
    )


def rotary_order(*, heads: int, head_size: int) -> NDArray[np.int64]:
    """Where each row of a rotated projection lies in a GGUF file of the llama architecture.

    There the two halves that rotate together are neighbours (0, h/2, 1, h/2 + 1, ...); ``GroupQueryAttention`` wants
    the halves one after the other. Inverse of ``LlamaModel.permute`` in llama.cpp's convert_hf_to_gguf.py.
    """
    rows = np.arange(heads * head_size, dtype=np.int64)
    order: NDArray[np.int64] = rows.reshape(heads, head_size // 2, 2).swapaxes(1, 2).ravel()
    return order


def _block_diagonal(matrices: list[Quantised]) -> LowRank | None:
    """The terms of ``matrices`` side by side: ``down`` is one product of the input, each ``up`` reads its own part."""
    ranks = [0 if matrix.low_rank is None else len(matrix.low_rank.down) for matrix in matrices]
    if not any(ranks):
        return None
    up = np.zeros((sum(matrix.shape[0] for matrix in matrices), sum(ranks)), np.float32)
    row = column = 0
    for matrix, rank in zip(matrices, ranks, strict=True):
        if matrix.low_rank is not None:
            up[row : row + matrix.shape[0], column : column + rank] = matrix.low_rank.up
        row, column = row + matrix.shape[0], column + rank
    return LowRank(down=np.concatenate([one.low_rank.down for one in matrices if one.low_rank is not None]), up=up)


def _dense(data: NDArray[Any]) -> Dense:
    return Dense(values=_finite(data))


def _q8_0(data: NDArray[Any]) -> Quantised:
    scale, quants = _split(data, _HALF, BLOCK)
    packed = quants ^ np.uint8(0x80)  # int8 to offset binary: q + 128, modulo 256
    return Quantised(bits=8, packed=packed, scales=_half(scale), carry=None)


def _q4_0(data: NDArray[Any]) -> Quantised:
    scale, nibbles = _split(data, _HALF, BLOCK // 2)
    return Quantised(bits=4, packed=_neighbours(nibbles), scales=_half(scale), carry=None)


def _q4_1(data: NDArray[Any]) -> Quantised:
    scale, minimum, nibbles = _split(data, _HALF, _HALF, BLOCK // 2)
    scales = _half(scale)
    return Quantised(bits=4, packed=_neighbours(nibbles), scales=scales, carry=_half(minimum) + 8 * scales)


_CONVERTERS: dict[str, Callable[[NDArray[Any]], Matrix]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q8_0": _q8_0,
    "F16": _dense,
    "F32": _dense,
}
SUPPORTED_TYPES = tuple(_CONVERTERS)


def _split(data: NDArray[Any], *sizes: int) -> list[NDArray[np.uint8]]:
    """The fields of each block: (N, K / 32, size) for each of ``sizes`` in bytes."""
    blocks = data.reshape(data.shape[0], -1, sum(sizes))
    return np.split(blocks, np.cumsum(sizes)[:-1], axis=2)


def _half(field: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The float16 in each block, (N, K / 32)."""
    return _finite(np.ascontiguousarray(field).view("<f2")[..., 0].astype(np.float32))


def _finite(values: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(values).all():
        raise ValueError("a value or the scale of a block is not a finite number")
    return values


def _neighbours(nibbles: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """ggml's nibble order to that of ``MatMulNBits``; both are 16 bytes a block."""
    elements: NDArray[np.uint8] = np.concatenate([nibbles & 0x0F, nibbles >> 4], axis=2)
    packed: NDArray[np.uint8] = elements[..., 0::2] | (elements[..., 1::2] << np.uint8(4))
    return packed
