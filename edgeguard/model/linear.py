"""Multiplying by a weight matrix and looking up its rows, in ONNX nodes, at the precision the matrix has.

A matrix is stored once, under its name: ``NAME`` (packed or dense), ``NAME.scales``, ``NAME.carry``, ``NAME.adapter``.
A head that is tied to the embedding shares the embedding's storage. See ``weights`` for what a carry is.

An adapter costs one small product more per input: its ``down`` makes a few numbers of the input, which stand beside the
input's block sums, and its ``up`` stands below the carry, so that one product serves both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeguard.model.onnx_file import ELEMENTS, MICROSOFT, OnnxFile
from edgeguard.model.options import GraphOptions
from edgeguard.model.weights import BLOCK, Dense, Matrix, Quantised


class LinearWriter:
    """Adds products to one graph; remembers the block sums of each input, because matrices share them."""

    def __init__(self, *, file: OnnxFile, options: GraphOptions) -> None:
        self._file = file
        self._accuracy_level = options.accuracy_level
        self._dtype = np.dtype(options.activations.value)
        self._element = ELEMENTS[options.activations.value]
        self._stored_as_rows: set[str] = set()
        self._block_sums: dict[str, str] = {}

    def look_up(self, ids: str, name: str, matrix: Matrix, *, to: str) -> str:
        """The rows ``ids`` (batch, k) of the matrix: (batch, k, K)."""
        file = self._file
        if isinstance(matrix, Dense):
            found = file.node("Gather", [self._rows(name, matrix.values), ids], name=f"{to}/rows")
            return file.node("Cast", [found], name=to, to=self._element)
        blocks = self._look_up_blocks(ids, name, matrix, to=to)
        shape = file.constant(f"{to}/shape", np.array([0, 0, matrix.shape[1]], np.int64))
        return file.node("Reshape", [blocks, shape], name=to)

    def multiply(self, inputs: str, name: str, matrix: Matrix, *, to: str) -> str:
        """``inputs`` (batch, k, K) times the transposed matrix: (batch, k, N)."""
        file = self._file
        if isinstance(matrix, Dense):
            return file.node("MatMul", [inputs, self._columns(name, matrix.values)], name=to)
        rows, columns = matrix.shape
        alone = matrix.carry is None and matrix.low_rank is None
        product = file.node(
            "MatMulNBits",
            [inputs, self._rows(name, matrix.packed), self._rows(f"{name}.scales", matrix.scales)],
            name=to if alone else f"{to}/symmetric",
            domain=MICROSOFT,
            K=columns,
            N=rows,
            bits=matrix.bits,
            block_size=BLOCK,
            accuracy_level=self._accuracy_level,
        )
        if alone:
            return product
        return file.node("Add", [product, self._beside(inputs, name, matrix, to=to)], name=to)

    def _beside(self, inputs: str, name: str, matrix: Quantised, *, to: str) -> str:
        """What comes on top of the symmetric product: carry and adapter, (batch, k, N)."""
        file = self._file
        factors, terms = [], []
        if matrix.carry is not None:
            factors.append(self._sums_of(inputs, matrix.shape[1]))
            terms.append(matrix.carry)
        if matrix.low_rank is not None:
            down = self._columns(f"{name}.adapter", matrix.low_rank.down)
            factors.append(file.node("MatMul", [inputs, down], name=f"{to}/adapter"))
            terms.append(matrix.low_rank.up)
        factor = factors[0] if len(factors) == 1 else file.node("Concat", factors, name=f"{to}/factors", axis=-1)
        term = terms[0] if len(terms) == 1 else np.concatenate(terms, axis=1)
        return file.node("MatMul", [factor, self._columns(f"{name}.carry", term)], name=f"{to}/carry")

    def _look_up_blocks(self, ids: str, name: str, matrix: Quantised, *, to: str) -> str:
        """(batch, k, K / 32, 32)."""
        file = self._file
        per_block = (*matrix.scales.shape, 1)
        scales = file.view(f"{name}.scales_3d", self._rows(f"{name}.scales", matrix.scales), per_block)
        blocks = file.node(
            "GatherBlockQuantized",
            [self._rows(name, matrix.packed), ids, scales],
            name=f"{to}/blocks",
            domain=MICROSOFT,
            bits=matrix.bits,
            block_size=BLOCK,
            gather_axis=0,
            quantize_axis=2,
        )
        if matrix.carry is None:
            return blocks
        carries = file.view(f"{name}.carry_3d", self._rows(f"{name}.carry", matrix.carry), per_block)
        carried = file.node("Gather", [carries, ids], name=f"{to}/carry")
        return file.node("Add", [blocks, carried], name=f"{to}/exact")

    def _sums_of(self, inputs: str, columns: int) -> str:
        """The sums over each block of ``inputs``: (batch, k, K / 32)."""
        if inputs not in self._block_sums:
            file = self._file
            shape = file.constant(f"blocks_of_{columns}", np.array([0, 0, columns // BLOCK, BLOCK], np.int64))
            axis = file.constant("last_axis", np.array([-1], np.int64))
            blocks = file.node("Reshape", [inputs, shape], name=f"{inputs}/blocks")
            self._block_sums[inputs] = file.node("ReduceSum", [blocks, axis], name=f"{inputs}/block_sums", keepdims=0)
        return self._block_sums[inputs]

    def _rows(self, name: str, values: NDArray[Any]) -> str:
        """The operand that holds ``values`` as they are, but no float finer than the activations."""
        if name not in self._stored_as_rows:
            self._stored_as_rows.add(name)
            self._file.weight(name, self._coarse(values))
        return name

    def _columns(self, name: str, values: NDArray[Any]) -> str:
        """The operand of the activations' type with ``values`` (N, K) as (K, N); ONNX Runtime folds the nodes."""
        stored = self._coarse(values)
        if name in self._stored_as_rows:
            operand = self._file.node("Transpose", [name], name=f"{name}/transposed", perm=[1, 0])
        else:
            operand = self._file.weight(name, stored.T)
        if stored.dtype == self._dtype:
            return operand
        return self._file.node("Cast", [operand], name=f"{name}/{self._dtype}", to=self._element)

    def _coarse(self, values: NDArray[Any]) -> NDArray[Any]:
        finer = values.dtype.kind == "f" and values.dtype.itemsize > self._dtype.itemsize
        return values.astype(self._dtype) if finer else values
