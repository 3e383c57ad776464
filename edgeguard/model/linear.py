"""Multiplying by a weight matrix and looking up its rows, in ONNX nodes, at the precision the matrix has.

A matrix is stored once under its name: ``NAME`` (packed or dense), ``NAME.scales``, ``NAME.carry``. The embedding and
a head tied to it share that storage. See ``weights`` for what a carry is.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from edgeguard.model.onnx_file import MICROSOFT, OnnxFile
from edgeguard.model.weights import BLOCK, Dense, Matrix, Quantised


class LinearWriter:
    """Adds products to one graph; remembers the block sums of each input, because matrices share them."""

    def __init__(self, *, file: OnnxFile, accuracy_level: int) -> None:
        self._file = file
        self._accuracy_level = accuracy_level
        self._block_sums: dict[str, str] = {}

    def store(self, name: str, matrix: Matrix) -> None:
        """Write the matrix as (N, ...) rows, ready for ``multiply`` and ``look_up``."""
        if isinstance(matrix, Dense):
            self._file.weight(name, matrix.values)
            return
        self._file.weight(name, matrix.packed)
        self._file.weight(f"{name}.scales", matrix.scales)
        if matrix.carry is not None:
            self._file.weight(f"{name}.carry", matrix.carry)

    def multiply(self, inputs: str, name: str, matrix: Matrix, *, to: str) -> str:
        """``inputs`` (batch, k, K) times the stored matrix, transposed: float32 (batch, k, N)."""
        if isinstance(matrix, Dense):
            return self._dense(inputs, name, to=to)
        rows, columns = matrix.shape
        product = f"{to}/symmetric" if matrix.carry is not None else to
        self._file.node(
            "MatMulNBits",
            [inputs, name, f"{name}.scales"],
            name=product,
            domain=MICROSOFT,
            K=columns,
            N=rows,
            bits=matrix.bits,
            block_size=BLOCK,
            accuracy_level=self._accuracy_level,
        )
        if matrix.carry is None:
            return product
        carried = self._dense(self._sums_of(inputs, columns), f"{name}.carry", to=f"{to}/carry")
        return self._file.node("Add", [product, carried], name=to)

    def look_up(self, ids: str, name: str, matrix: Matrix, *, to: str) -> str:
        """The rows ``ids`` (batch, k) of the stored matrix: float32 (batch, k, K)."""
        file = self._file
        if isinstance(matrix, Dense):
            found = file.node("Gather", [name, ids], name=f"{to}/rows")
            return file.node("Cast", [found], name=to, to=TensorProto.FLOAT)
        blocks = self._look_up_blocks(ids, name, matrix, to=to)
        shape = file.constant(f"{to}/shape", np.array([0, 0, matrix.shape[1]], np.int64))
        return file.node("Reshape", [blocks, shape], name=to)

    def _look_up_blocks(self, ids: str, name: str, matrix: Quantised, *, to: str) -> str:
        file = self._file
        scales = file.view(f"{name}.scales_3d", f"{name}.scales", (*matrix.scales.shape, 1))
        blocks = file.node(
            "GatherBlockQuantized",
            [name, ids, scales],
            name=f"{to}/blocks",
            domain=MICROSOFT,
            bits=matrix.bits,
            block_size=BLOCK,
            gather_axis=0,
            quantize_axis=2,
        )
        if matrix.carry is None:
            return blocks
        column = file.view(f"{name}.carry_3d", f"{name}.carry", (*matrix.carry.shape, 1))
        carried = file.node("Gather", [column, ids], name=f"{to}/carry")
        return file.node("Add", [blocks, carried], name=f"{to}/exact")

    def _dense(self, inputs: str, name: str, *, to: str) -> str:
        """ONNX Runtime folds the cast and the transposition when it loads the model; the file keeps its precision."""
        wide = self._file.node("Cast", [name], name=f"{to}/float32", to=TensorProto.FLOAT)
        columns = self._file.node("Transpose", [wide], name=f"{to}/transposed", perm=[1, 0])
        return self._file.node("MatMul", [inputs, columns], name=to)

    def _sums_of(self, inputs: str, columns: int) -> str:
        """The sums over each block of ``inputs``: float32 (batch, k, K / 32)."""
        if inputs not in self._block_sums:
            file = self._file
            shape = file.constant(f"blocks_of_{columns}", np.array([0, 0, columns // BLOCK, BLOCK], np.int64))
            axis = file.constant("last_axis", np.array([-1], np.int64))
            blocks = file.node("Reshape", [inputs, shape], name=f"{inputs}/blocks")
            self._block_sums[inputs] = file.node("ReduceSum", [blocks, axis], name=f"{inputs}/block_sums", keepdims=0)
        return self._block_sums[inputs]
