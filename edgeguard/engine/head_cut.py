"""One rewriting of a graph: the head's weights with only the rows that are kept, everything else as it was.

The way goes backwards from the logits: what is computed element by element is cut at its operands, a product at its
weights. Knows ONNX's field numbers (onnx.proto, IR 13). A head of which the way is not known raises ``UncutError``,
which says why; a graph or weights that cannot be read raise ``ValueError``, ``LookupError`` or ``OSError``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.onnx_parts import Node, Tensor, resized
from edgeguard.engine.protobuf import Message
from edgeguard.errors import EdgeguardError

_GRAPH = 7  # of a model
_NODE, _INITIALIZER, _INPUT, _OUTPUT, _VALUE_INFO = 1, 5, 11, 12, 13  # of a graph
_ELEMENTWISE = ("Add", "Cast", "Div", "Identity", "Mul", "Sub", "Tanh")


class UncutError(EdgeguardError):
    """Why this head stays whole."""


class Cut:
    """One rewriting. ``kept`` are the rows, in the order in which they will stand."""

    def __init__(self, *, folder: ModelFolder, kept: NDArray[np.int64]) -> None:
        self._logits = folder.names.logits
        self._vocabulary = folder.vocabulary
        self._kept = kept
        self._folder: Path = folder.path
        self._model = Message.parse(folder.graph.path.read_bytes())
        self._graph = Message.parse(self._model.every(_GRAPH)[0])
        self._nodes = [Node.parse(content) for content in self._graph.every(_NODE)]
        self._tensors = {one.name: one for one in map(Tensor.parse, self._graph.every(_INITIALIZER))}
        self._producers = {name: node for node in self._nodes for name in node.outputs}
        self._inputs = {Message.parse(content).text(1) for content in self._graph.every(_INPUT)}
        self._replaced: dict[str, Node] = {}  # by what they put out
        self._made: dict[str, Node] = {}
        self._taken: dict[tuple[str, int], Tensor] = {}

    def model(self) -> bytes:
        """The rewritten file."""
        self._activation(self._logits)
        self._drop_unused()
        logits = self._made.pop(self._logits)
        graph = self._graph
        graph.put(_NODE, *(node.message.encode() for node in (*self._nodes, *self._made.values(), logits)))
        tensors = [*self._tensors.values(), *self._taken.values()]
        graph.put(_INITIALIZER, *(tensor.message.encode() for tensor in tensors))
        outputs = [
            resized(content, {-1: len(self._kept)}) if Message.parse(content).text(1) == self._logits else content
            for content in graph.every(_OUTPUT)
        ]
        graph.put(_OUTPUT, *outputs)
        known = {self._logits, *self._replaced}
        graph.put(_VALUE_INFO, *(one for one in graph.every(_VALUE_INFO) if Message.parse(one).text(1) not in known))
        self._model.put(_GRAPH, graph.encode())
        return self._model.encode()

    def _activation(self, name: str) -> str:
        """What is called ``name``, with only the kept ones along its last axis."""
        node = self._producers.get(name)
        if node is None:
            return self._weight(name, axis=-1)
        if node.operator == "DynamicQuantizeLinear" and name != node.outputs[0]:
            return name  # the scale and the zero point of a whole tensor
        return self._copy(node, self._operands(node))

    def _operands(self, node: Node) -> list[str]:
        """The operands of a cut node."""
        inputs = list(node.inputs)
        cuts = self._cuts(node)
        if cuts is None:
            raise UncutError(f"its head has the operator {node.operator} ({node.outputs[0]!r})")
        for at, cut in cuts.items():
            if at < len(inputs) and inputs[at]:
                inputs[at] = cut(inputs[at])
        return inputs

    def _cuts(self, node: Node) -> dict[int, Callable[[str], str]] | None:
        """How each operand that has the vocabulary in its shape is cut; None for an unknown operator."""
        last = self._last_axis
        if node.operator in _ELEMENTWISE:
            return dict.fromkeys(range(len(node.inputs)), self._activation)
        if node.operator == "MatMul":
            return {1: last}
        if node.operator == "MatMulInteger":
            return {1: last, 3: last}
        if node.operator == "Gemm":
            first = node.integer("transB") == 1
            return {1: (lambda name: self._weight(name, axis=-2)) if first else last, 2: last}
        if node.operator == "MatMulNBits":
            return dict.fromkeys((1, 2, 3, 5), self._rows)
        return None

    def _last_axis(self, name: str) -> str:
        return self._weight(name, axis=-1)

    def _weight(self, name: str, *, axis: int) -> str:
        """A weight with only the kept ones along ``axis`` (counted from the end); one that is broadcast stays."""
        tensor = self._tensors.get(name)
        if tensor is not None:
            if -axis > len(tensor.shape) or tensor.shape[axis] == 1:
                return name
            return self._take(tensor, axis=axis)
        node = self._producers.get(name)
        if node is None:
            raise UncutError(f"its head depends on the input {name!r}")
        if node.operator in ("Cast", "Identity"):
            return self._copy(node, [self._weight(node.inputs[0], axis=axis)])
        if node.operator == "Transpose":
            order = node.integers("perm")
            if not order:
                raise UncutError(f"the transposition {name!r} in its head names no axes")
            return self._copy(node, [self._weight(node.inputs[0], axis=order[axis] - len(order))])
        if node.operator == "DequantizeLinear":
            return self._copy(node, self._dequantised(node, axis=axis))
        raise UncutError(f"the weights of its head come from the operator {node.operator} ({name!r})")

    def _dequantised(self, node: Node, *, axis: int) -> list[str]:
        """Scales and zero points are one, one per row or column, or one per block of the other axis."""
        values, *companions = node.inputs
        if values not in self._tensors:
            raise UncutError(f"the quantised weights of its head, {values!r}, are computed")
        rank = len(self._tensors[values].shape)
        along = node.integer("axis", 1)
        per_row = (along if along < 0 else along - rank) == axis
        operands = [self._weight(values, axis=axis)]
        for name in companions:
            flat = name in self._tensors and len(self._tensors[name].shape) < 2
            if not name or (flat and not per_row):
                operands.append(name)
            else:
                operands.append(self._weight(name, axis=-1 if flat else axis))
        return operands

    def _rows(self, name: str) -> str:
        """An operand of ``MatMulNBits``: its first axis is the row, or row and block in one."""
        tensor = self._tensors.get(name)
        if tensor is None:
            raise UncutError(f"the quantised weights of its head, {name!r}, are computed")
        flat = len(tensor.shape) == 1
        if not flat or tensor.shape[0] % self._vocabulary:
            return self._take(tensor, axis=-len(tensor.shape))
        return self._take(tensor, axis=-2, seen_as=(self._vocabulary, tensor.shape[0] // self._vocabulary))

    def _take(self, tensor: Tensor, *, axis: int, seen_as: tuple[int, ...] | None = None) -> str:
        shape = seen_as or tensor.shape
        if shape[axis] != self._vocabulary:
            raise UncutError(f"{tensor.name!r} of its head is {list(tensor.shape)}, without an axis of the vocabulary")
        if tensor.name in self._inputs:
            raise UncutError(f"{tensor.name!r} of its head is an input too")
        key = (tensor.name, axis)
        if key not in self._taken:
            elements = tensor.read(self._folder)
            if elements is None:
                raise UncutError(f"{tensor.name!r} of its head is stored in a way that is not read here")
            taken = np.take(elements.reshape(shape), self._kept, axis=axis)
            dims = taken.shape if seen_as is None else (math.prod(taken.shape),)
            self._taken[key] = tensor.with_elements(self._name(tensor.name), taken, shape=dims)
        return self._taken[key].name

    def _copy(self, node: Node, inputs: list[str]) -> str:
        """The node with other operands, under the name of the logits or a new one."""
        output = node.outputs[0]
        if inputs == list(node.inputs):
            return output
        name = output if output == self._logits else self._name(output)
        integers = {"N": len(self._kept)} if node.operator == "MatMulNBits" else {}
        self._made[name] = node.changed(inputs=inputs, output=name, integers=integers)
        self._replaced[output] = node
        return name

    def _name(self, name: str) -> str:
        return f"{name}/cut"

    def _drop_unused(self) -> None:
        """The whole head, and those of its weights that nothing else reads (an embedding may)."""
        if self._logits not in self._made:
            raise UncutError("its logits depend on no weights of the vocabulary's size")
        if any(node.mentions(self._logits) for node in self._nodes):
            raise UncutError("its logits are used inside the graph")
        outputs = {Message.parse(content).text(1) for content in self._graph.every(_OUTPUT)} - {self._logits}
        everything = [*self._nodes, *self._made.values()]
        candidates = dict(self._replaced)
        while unused := [
            name for name in candidates if name not in outputs and not any(node.mentions(name) for node in everything)
        ]:
            gone = [candidates.pop(name) for name in unused]
            everything = [node for node in everything if node not in gone]
        self._nodes = [node for node in self._nodes if node in everything]
        for name, _ in self._taken:
            if not any(node.mentions(name) for node in everything):
                self._tensors.pop(name, None)
