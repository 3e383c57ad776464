"""The ONNX graph of a llama model for ONNX Runtime: one forward pass of k new tokens with p tokens cached.

    input_ids int64 [batch, k]           logits [batch, 1 or k, vocabulary]
    attention_mask int64 [batch, p + k]
    past_key_values.L.key/value          present.L.key/value [batch, kv heads, capacity, head size]

Logits and cache are float32 or float16, as the activations are. Bound to the same buffer, past and present are the
shared KV cache of ``GroupQueryAttention``: nothing is copied, and going back to a prefix is a shorter mask; with plain
attention it grows from p to p + k. The names are onnxruntime-genai's.

The head is applied to the last position only, unless ``Logits.ALL``: with a large vocabulary it would cost as much as
many layers at each of the others, where nobody chooses a token.

Knows GGUF's tensor names and nothing of files, tokenizers or recipes.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from edgeguard.errors import ModelError
from edgeguard.model.adapter import Adapter
from edgeguard.model.attention import GroupedAttention, PlainAttention
from edgeguard.model.convert import convert
from edgeguard.model.gguf_source import GgufSource
from edgeguard.model.linear import LinearWriter
from edgeguard.model.onnx_file import ELEMENTS, MICROSOFT, OnnxFile
from edgeguard.model.options import Attention, GraphOptions, Logits, Weights
from edgeguard.model.progress import Progress
from edgeguard.model.weights import Matrix, concatenate


def write_graph(
    *, source: GgufSource, adapter: Adapter | None, file: OnnxFile, options: GraphOptions, progress: Progress
) -> None:
    """Add the whole model to ``file``; one step of progress per layer. ``ModelError`` for what cannot be built."""
    if adapter is not None:
        adapter.check_fits(source.shapes)
    _LlamaGraph(source=source, adapter=adapter, file=file, options=options).write(progress)


class _LlamaGraph:
    def __init__(self, *, source: GgufSource, adapter: Adapter | None, file: OnnxFile, options: GraphOptions) -> None:
        self._source = source
        self._adapter = adapter
        self._hyper = source.hyper
        self._file = file
        self._options = options
        self._linear = LinearWriter(file=file, options=options)
        kind = GroupedAttention if options.attention is Attention.GROUPED else PlainAttention
        self._attention = kind(file=file, hyper=self._hyper, activations=options.activations)

    def write(self, progress: Progress) -> None:
        layers = self._hyper.layers
        progress("convert", 0, layers + 1)
        ids = self._declare()
        self._attention.prepare()
        table = self._matrix("token_embd", self._options.of_vocabulary(self._options.embedding))
        residual, delta = self._linear.look_up(ids, "token_embd", table, to="embedding"), ""
        for layer in range(layers):
            block = f"blk.{layer}"
            normed, residual = self._add_and_norm(residual, delta, gain=f"{block}.attn_norm")
            delta = self._attend(normed, layer)
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
        element = ELEMENTS[self._options.activations.value]
        file.output("logits", element, ["batch", positions, hyper.vocabulary])
        past, present = self._attention.past_length, self._attention.present_length
        for layer in range(hyper.layers):
            for kind in ("key", "value"):
                file.input(f"past_key_values.{layer}.{kind}", element, ["batch", hyper.kv_heads, past, hyper.head_size])
                file.output(f"present.{layer}.{kind}", element, ["batch", hyper.kv_heads, present, hyper.head_size])
        return ids

    def _add_and_norm(self, residual: str, delta: str, *, gain: str) -> tuple[str, str]:
        """The norm of the sum, named after its gain, and the sum itself; the first norm has no ``delta``."""
        values = self._source.vector(gain).astype(self._options.activations.value)
        weight = self._file.weight(f"{gain}.weight", values)
        epsilon = self._hyper.norm_epsilon
        if not delta:
            self._file.node("SimplifiedLayerNormalization", [residual, weight], name=gain, epsilon=epsilon, axis=-1)
            return gain, residual
        total = f"{gain}/residual"
        if self._options.attention is Attention.PLAIN:  # for those who compile: QNN leaves the two in one to the CPU
            self._file.node("Add", [residual, delta], name=total)
            self._file.node("SimplifiedLayerNormalization", [total, weight], name=gain, epsilon=epsilon, axis=-1)
            return gain, total
        inputs, names = [residual, delta, weight], [gain, "", "", total]
        self._file.nodes("SkipSimplifiedLayerNormalization", inputs, names=names, domain=MICROSOFT, epsilon=epsilon)
        return gain, total

    def _attend(self, normed: str, layer: int) -> str:
        block = f"blk.{layer}"
        names = [f"{block}.attn_{part}" for part in "qkv"]
        packed = self._project(normed, names, to=f"{block}.attn_qkv")
        attended = self._attention.attend(packed, layer=layer, to=f"{block}.attention")
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
