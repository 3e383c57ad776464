"""The attention of a llama layer in ONNX nodes, in the two forms that execution providers run.

*Grouped*: ONNX Runtime's ``GroupQueryAttention``, with the cache shared between past and present. *Plain*: nothing but
standard operators, for providers that compile the graph themselves; past goes in, a longer present comes out. The past
may be longer than what is cached: what the mask leaves out is not seen, and positions count what it keeps.

    past, present of a layer    [batch, kv heads, capacity or length, head size]

Rotary embedding: RoFormer, equation 15, the halves of a head rotated against each other as llama does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from edgeguard.model.gguf_source import Hyperparameters
from edgeguard.model.onnx_file import MICROSOFT, OnnxFile
from edgeguard.model.options import Activations

_MASKED = -1e4
"""What a position that may not be seen gets before softmax: nothing is left of it, and float16 can hold it."""


def rotary_caches(hyper: Hyperparameters) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine and sine of position times frequency, float32 (context, head size / 2); RoFormer, equation 15."""
    frequencies = hyper.rope_base ** (-np.arange(0, hyper.head_size, 2, dtype=np.float64) / hyper.head_size)
    angles = np.outer(np.arange(hyper.context, dtype=np.float64), frequencies)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class GroupedAttention:
    """One buffer is past and present, so the third axis of both is the same."""

    past_length = present_length = "capacity"

    def __init__(self, *, file: OnnxFile, hyper: Hyperparameters, activations: Activations) -> None:
        self._file = file
        self._hyper = hyper
        self._dtype = activations.value

    def prepare(self) -> None:
        """From the mask: int32 (batch,) of the lengths minus one, and the longest as an int32 scalar."""
        file = self._file
        mask = "attention_mask"
        one, axis = file.constant("one", np.array(1, np.int64)), file.constant("last_axis", np.array([-1], np.int64))
        length = file.node("ReduceSum", [mask, axis], name="attention_mask/length", keepdims=0)
        last = file.node("Sub", [length, one], name="attention_mask/last")
        file.node("Cast", [last], name="seqlens_k", to=TensorProto.INT32)
        shape = file.node("Shape", [mask], name="attention_mask/shape")
        total = file.node("Gather", [shape, one], name="attention_mask/total")
        file.node("Cast", [total], name="total_sequence_length", to=TensorProto.INT32)
        for name, values in zip(("cos_cache", "sin_cache"), rotary_caches(self._hyper), strict=True):
            file.weight(name, values.astype(self._dtype))

    def attend(self, packed: str, *, layer: int, to: str) -> str:
        """Of the packed queries, keys and values (batch, k, (heads + 2 kv heads) · head size)."""
        past, present = (
            [f"{kind}.{layer}.{part}" for part in ("key", "value")] for kind in ("past_key_values", "present")
        )
        attended, *_ = self._file.nodes(
            "GroupQueryAttention",
            [packed, "", "", *past, "seqlens_k", "total_sequence_length", "cos_cache", "sin_cache"],
            names=[to, *present],
            domain=MICROSOFT,
            num_heads=self._hyper.heads,
            kv_num_heads=self._hyper.kv_heads,
            do_rotary=1,
        )
        return attended


class PlainAttention:
    """The heads that share keys and values are rows of one product, so nothing is repeated."""

    past_length, present_length = "past", "total"

    def __init__(self, *, file: OnnxFile, hyper: Hyperparameters, activations: Activations) -> None:
        self._file = file
        self._hyper = hyper
        self._dtype = activations.value

    def prepare(self) -> None:
        """Cosines and sines (k, head size / 2) of the new positions, and the causal mask (k, total)."""
        file = self._file
        zero, one = (file.constant(name, np.array(number, np.int64)) for name, number in (("zero", 0), ("one", 1)))
        two, axis = file.constant("two", np.array(2, np.int64)), file.constant("last_axis", np.array([-1], np.int64))
        count, total = self._length_of("input_ids", one), self._length_of("attention_mask", one)
        past = self._length_of("past_key_values.0.key", two)
        kept = file.node("ReduceSum", ["attention_mask", axis], name="attention_mask/kept", keepdims=0)
        cached = file.node("Sub", [kept, count], name="cached")
        order = file.node("Range", [zero, count, one], name="order")
        new = file.node("Add", [order, cached], name="positions")
        every = file.node("Range", [zero, total, one], name="all_places")
        for name, values in zip(("cos", "sin"), rotary_caches(self._hyper), strict=True):
            cache = file.weight(f"{name}_cache", values.astype(self._dtype))
            file.node("Gather", [cache, new], name=name)
        column = file.constant("column", np.array([-1, 1], np.int64))
        places = file.node("Range", [past, total, one], name="places")
        rows = file.node("Reshape", [places, column], name="places/column")
        before = file.node("LessOrEqual", [every, rows], name="causal/before")
        there = file.node("Cast", ["attention_mask"], name="attention_mask/there", to=TensorProto.BOOL)
        seen = file.node("And", [before, there], name="causal/seen")
        nothing, masked = (file.constant(n, np.array(v, self._dtype)) for n, v in (("nothing", 0), ("masked", _MASKED)))
        file.node("Where", [seen, nothing, masked], name="causal")

    def attend(self, packed: str, *, layer: int, to: str) -> str:
        """Of the packed queries, keys and values (batch, k, (heads + 2 kv heads) · head size)."""
        file, hyper = self._file, self._hyper
        size, group = hyper.head_size, hyper.heads // hyper.kv_heads
        sizes = np.array([hyper.heads * size, hyper.kv_heads * size, hyper.kv_heads * size], np.int64)
        lengths = file.constant("qkv_sizes", sizes)
        names = [f"{to}/{part}" for part in ("query", "key", "value")]
        query, key, value = file.nodes("Split", [packed, lengths], names=names, axis=-1)
        query = self._rotated(self._heads(query, hyper.heads), to=f"{to}/rotated_query")
        key = self._rotated(self._heads(key, hyper.kv_heads), to=f"{to}/rotated_key")
        value = self._heads(value, hyper.kv_heads)
        keys, values = (
            file.node("Concat", [f"past_key_values.{layer}.{part}", new], name=f"present.{layer}.{part}", axis=2)
            for part, new in (("key", key), ("value", value))
        )
        scale = file.constant("scale", np.array(size**-0.5, self._dtype))
        scaled = file.node("Mul", [query, scale], name=f"{to}/scaled_query")
        # (batch, heads, k, size) -> (batch, kv heads, group · k, size): a group's heads lie behind one another.
        grouped = self._reshaped(scaled, [0, hyper.kv_heads, -1, size], name=f"{to}/grouped_query")
        across = file.node("Transpose", [keys], name=f"{to}/keys_across", perm=[0, 1, 3, 2])
        scores = file.node("MatMul", [grouped, across], name=f"{to}/scores")
        apart = self._apart(scores, to=to)
        hidden = file.node("Add", [apart, "causal"], name=f"{to}/masked")
        weights = file.node("Softmax", [hidden], name=f"{to}/weights", axis=-1)
        together = file.node("Reshape", [weights, f"{to}/together_shape"], name=f"{to}/weights_together")
        mixed = file.node("MatMul", [together, values], name=f"{to}/mixed")
        heads = self._reshaped(mixed, [0, hyper.kv_heads * group, -1, size], name=f"{to}/heads")
        rows = file.node("Transpose", [heads], name=f"{to}/rows", perm=[0, 2, 1, 3])
        return self._reshaped(rows, [0, 0, hyper.heads * size], name=to)

    def _apart(self, scores: str, *, to: str) -> str:
        """(batch, kv heads, group · k, total) -> (batch, heads, k, total), for the mask; keeps the shape to go back."""
        file = self._file
        file.node("Shape", [scores], name=f"{to}/together_shape")
        batch = file.constant("batch_axis", np.array([0], np.int64))
        last = file.constant("total_axis", np.array([3], np.int64))
        total = file.node("Gather", [f"{to}/together_shape", last], name=f"{to}/total")
        first = file.node("Gather", [f"{to}/together_shape", batch], name=f"{to}/batch")
        middle = file.constant("heads_and_rows", np.array([self._hyper.heads, -1], np.int64))
        shape = file.node("Concat", [first, middle, total], name=f"{to}/apart_shape", axis=0)
        return file.node("Reshape", [scores, shape], name=f"{to}/apart")

    def _heads(self, rows: str, count: int) -> str:
        """(batch, k, count · size) -> (batch, count, k, size)."""
        split = self._reshaped(rows, [0, 0, count, self._hyper.head_size], name=f"{rows}/split")
        return self._file.node("Transpose", [split], name=f"{rows}/heads", perm=[0, 2, 1, 3])

    def _rotated(self, heads: str, *, to: str) -> str:
        file = self._file
        left, right = file.nodes("Split", [heads], names=[f"{to}/left", f"{to}/right"], axis=-1, num_outputs=2)

        def product(side: str, function: str) -> str:
            return file.node("Mul", [side, function], name=f"{side}/{function}")

        first = file.node("Sub", [product(left, "cos"), product(right, "sin")], name=f"{to}/first")
        second = file.node("Add", [product(right, "cos"), product(left, "sin")], name=f"{to}/second")
        return file.node("Concat", [first, second], name=to, axis=-1)

    def _reshaped(self, values: str, shape: list[int], *, name: str) -> str:
        constant = "shape_" + "_".join(map(str, shape)).replace("-", "m")
        return self._file.node("Reshape", [values, self._file.constant(constant, np.array(shape, np.int64))], name=name)

    def _length_of(self, name: str, axis: str) -> str:
        shape = self._file.node("Shape", [name], name=f"{name}/shape")
        return self._file.node("Gather", [shape, axis], name=f"{name}/length")
