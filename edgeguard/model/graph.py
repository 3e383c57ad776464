"""The ONNX graph of a llama model for ONNX Runtime: one forward pass of k new tokens with p tokens cached.

    input_ids int64 [batch, k]           logits float32 [batch, 1 or k, vocabulary]
    attention_mask int64 [batch, p + k]
    past_key_values.L.key/value          present.L.key/value, float32 [batch, kv heads, capacity, head size]

Bound to the same buffer, past and present are the shared KV cache of ``GroupQueryAttention``: nothing is copied, and
going back to a prefix is a shorter mask. The names are onnxruntime-genai's.

The head is applied to the last position only, unless ``Logits.ALL``: with a large vocabulary it would cost as much as
many layers at each of the others, where nobody chooses a token.

Knows GGUF's tensor names and nothing of files, tokenizers or recipes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from edgeguard.errors import ModelError
from edgeguard.model.adapter import Adapter
from edgeguard.model.convert import convert
from edgeguard.model.gguf_source import GgufSource, Hyperparameters
from edgeguard.model.linear import LinearWriter
from edgeguard.model.onnx_file import MICROSOFT, OnnxFile
from edgeguard.model.options import GraphOptions, Logits, Weights
from edgeguard.model.progress import Progress
from edgeguard.model.weights import Matrix, concatenate


def write_graph(
    *, source: GgufSource, adapter: Adapter | None, file: OnnxFile, options: GraphOptions, progress: Progress
) -> None:
    """Add the whole model to ``file``; one step of progress per layer. ``ModelError`` for what cannot be built."""
    if adapter is not None:
        adapter.check_fits(source.shapes)
    _LlamaGraph(source=source, adapter=adapter, file=file, options=options).write(progress)


def rotary_caches(hyper: Hyperparameters) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine and sine of position times frequency, float32 (context, head size / 2); RoFormer, equation 15."""
    frequencies = hyper.rope_base ** (-np.arange(0, hyper.head_size, 2, dtype=np.float64) / hyper.head_size)
    angles = np.outer(np.arange(hyper.context, dtype=np.float64), frequencies)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


class _LlamaGraph:
    def __init__(self, *, source: GgufSource, adapter: Adapter | None, file: OnnxFile, options: GraphOptions) -> None:
        self._source = source
        self._adapter = adapter
        self._hyper = source.hyper
        self._file = file
        self._options = options
        self._linear = LinearWriter(file=file, accuracy_level=options.accuracy_level)

    def write(self, progress: Progress) -> None:
        layers = self._hyper.layers
        progress("convert", 0, layers + 1)
        ids = self._declare()
        self._lengths()
        self._rotary()
        table = self._matrix("token_embd", self._options.of_vocabulary(self._options.embedding))
        residual, delta = self._linear.look_up(ids, "token_embd", table, to="embedding"), ""
        for layer in range(layers):
            block = f"blk.{layer}"
            normed, residual = self._add_and_norm(residual, delta, gain=f"{block}.attn_norm")
            delta = self._attention(normed, layer)
            normed, residual = self._add_and_norm(residual, delta, gain=f"{block}.ffn_norm")
            delta = self._feed_forward(normed, block)
            progress("convert", layer + 1, layers + 1)
        self._head(residual, delta)
        progress("convert", layers + 1, layers + 1)

    def _declare(self) -> str:
        """Inputs and outputs, in the order in which a reader expects them; returns the name of the token ids."""
        file, hyper = self._file, self._hyper
        ids = file.input("input_ids", TensorProto.INT64, ["batch", "new"])
        file.input("attention_mask", TensorProto.INT64, ["batch", "total"])
        positions: int | str = 1 if self._options.logits is Logits.LAST else "new"
        file.output("logits", TensorProto.FLOAT, ["batch", positions, hyper.vocabulary])
        cache: list[int | str] = ["batch", hyper.kv_heads, "capacity", hyper.head_size]
        for layer in range(hyper.layers):
            for kind in ("key", "value"):
                file.input(f"past_key_values.{layer}.{kind}", TensorProto.FLOAT, cache)
                file.output(f"present.{layer}.{kind}", TensorProto.FLOAT, cache)
        return ids

    def _lengths(self) -> None:
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

    def _rotary(self) -> None:
        cosines, sines = rotary_caches(self._hyper)
        self._file.weight("cos_cache", cosines)
        self._file.weight("sin_cache", sines)

    def _add_and_norm(self, residual: str, delta: str, *, gain: str) -> tuple[str, str]:
        """The norm of the sum, named after its gain, and the sum itself; the first norm has no ``delta``."""
        weight = self._file.weight(f"{gain}.weight", self._source.vector(gain))
        epsilon = self._hyper.norm_epsilon
        if not delta:
            self._file.node("SimplifiedLayerNormalization", [residual, weight], name=gain, epsilon=epsilon, axis=-1)
            return gain, residual
        names = [gain, "", "", f"{gain}/residual"]
        inputs = [residual, delta, weight]
        self._file.nodes("SkipSimplifiedLayerNormalization", inputs, names=names, domain=MICROSOFT, epsilon=epsilon)
        return gain, names[-1]

    def _attention(self, normed: str, layer: int) -> str:
        file, hyper = self._file, self._hyper
        block = f"blk.{layer}"
        packed = self._project(
            normed, [f"{block}.attn_q", f"{block}.attn_k", f"{block}.attn_v"], to=f"{block}.attn_qkv"
        )
        past = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        present = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        attended, *_ = file.nodes(
            "GroupQueryAttention",
            [packed, "", "", *past, "seqlens_k", "total_sequence_length", "cos_cache", "sin_cache"],
            names=[f"{block}.attention", *present],
            domain=MICROSOFT,
            num_heads=hyper.heads,
            kv_num_heads=hyper.kv_heads,
            do_rotary=1,
        )
        return self._project(attended, [f"{block}.attn_output"], to=f"{block}.attn_output")

    def _feed_forward(self, normed: str, block: str) -> str:
        """SwiGLU: down(silu(gate(x)) * up(x))."""
        file = self._file
        both = self._project(normed, [f"{block}.ffn_gate", f"{block}.ffn_up"], to=f"{block}.ffn_gate_up")
        gate, up = file.nodes("Split", [both], names=[f"{block}.gate", f"{block}.up"], axis=-1, num_outputs=2)
        sigmoid = file.node("Sigmoid", [gate], name=f"{block}.gate/sigmoid")
        silu = file.node("Mul", [gate, sigmoid], name=f"{block}.gate/silu")
        product = file.node("Mul", [silu, up], name=f"{block}.ffn_product")
        return self._project(product, [f"{block}.ffn_down"], to=f"{block}.ffn_down")

    def _head(self, residual: str, delta: str) -> None:
        file = self._file
        hidden, _ = self._add_and_norm(residual, delta, gain="output_norm")
        if self._options.logits is Logits.LAST:
            last = file.constant("last_position", np.array([-1], np.int64))
            hidden = file.node("Gather", [hidden, last], name="last_hidden_state", axis=1)
        options = self._options
        head, embedding = (options.of_vocabulary(chosen) for chosen in (options.head, options.embedding))
        name = "token_embd" if self._source.tied else "output"
        table = self._matrix(name, head)
        shared = self._source.tied and head is embedding  # else it is stored a second time, under a name of its own
        self._linear.multiply(hidden, name if shared else "output", table, to="logits")

    def _project(self, inputs: str, names: list[str], *, to: str) -> str:
        """The outputs of several matrices side by side: one product if they are of one kind, else one each."""
        matrices = [self._adapted(name, self._matrix(name, self._options.weights)) for name in names]
        together = concatenate(matrices)
        if together is not None:
            return self._linear.multiply(inputs, to, together, to=f"{to}/product")
        parts = [
            self._linear.multiply(inputs, name, matrix, to=f"{name}/product")
            for name, matrix in zip(names, matrices, strict=True)
        ]
        return self._file.node("Concat", parts, name=f"{to}/product", axis=-1)

    def _matrix(self, name: str, weights: Weights | None) -> Matrix:
        try:
            return convert(self._source.matrix(name), weights)
        except ValueError as error:
            raise ModelError(f"{self._source.path}: tensor {name!r}: {error}") from error

    def _adapted(self, name: str, matrix: Matrix) -> Matrix:
        term = None if self._adapter is None else self._adapter.term(name)
        return matrix if term is None else matrix.plus(term)
