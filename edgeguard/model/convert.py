"""A matrix of the file as another kind of weights, made of the exact values that the file has.

Rounding is symmetric and to the nearest in blocks of 32, as ggml's reference does it: ``quantize_row_q8_0_ref`` (the
largest magnitude is 127 steps) and ``quantize_row_q4_0_ref`` (the largest magnitude, with its sign, is -8 steps).
Raises ``ValueError`` where the wanted kind cannot be had.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgeguard.model.options import Weights
from edgeguard.model.weights import BLOCK, Dense, Matrix, Quantised


def convert(matrix: Matrix, wanted: Weights | None) -> Matrix:
    """``matrix`` as ``wanted``; as it is where it is that already, or nothing else is wanted."""
    if wanted is None:
        return matrix
    if wanted is Weights.Q4_EXACT:
        if not (isinstance(matrix, Quantised) and matrix.bits == 4):
            raise ValueError("q4-exact carries 4-bit blocks over, and the file has none here: take q8, f16 or f32")
        return matrix
    if wanted.is_float:
        return Dense(values=values_of(matrix).astype(np.float32 if wanted is Weights.F32 else np.float16))
    bits = 8 if wanted is Weights.Q8 else 4
    if isinstance(matrix, Quantised) and matrix.bits == bits and matrix.carry is None:
        return matrix
    return _rounded(values_of(matrix), bits=bits)


def values_of(matrix: Matrix) -> NDArray[np.float32]:
    """The weights as they are, float32 (N, K)."""
    if isinstance(matrix, Dense):
        return np.asarray(matrix.values, np.float32)
    packed = matrix.packed
    if matrix.bits == 4:
        packed = np.stack([packed & 0x0F, packed >> 4], axis=-1).reshape(*packed.shape[:2], BLOCK)
    values: NDArray[np.float32] = (packed.astype(np.float32) - 2 ** (matrix.bits - 1)) * matrix.scales[..., None]
    if matrix.carry is not None:
        values += matrix.carry[..., None]
    return values.reshape(matrix.shape)


def _rounded(values: NDArray[np.float32], *, bits: int) -> Quantised:
    rows, columns = values.shape
    if columns % BLOCK:
        raise ValueError(f"{columns} inputs are no multiple of {BLOCK}: take f16 or f32")
    blocks = values.reshape(rows, -1, BLOCK)
    if bits == 8:
        scales = np.abs(blocks).max(axis=-1) / 127
    else:
        largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=-1)[..., None], axis=-1)[..., 0]
        scales = largest / -8
    inverse = np.divide(1, scales, out=np.zeros_like(scales), where=scales != 0)
    half = 2 ** (bits - 1)
    steps = np.clip(np.rint(blocks * inverse[..., None]) + half, 0, 2 * half - 1).astype(np.uint8)
    packed = steps if bits == 8 else steps[..., 0::2] | (steps[..., 1::2] << np.uint8(4))
    return Quantised(bits=bits, packed=packed, scales=scales.astype(np.float32), carry=None)
