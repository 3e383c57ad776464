"""The weights of an ONNX graph by what they are for, read off its operators; weights themselves are not loaded.

Knows the operators and naming habits of the folders in the field: those built here, by onnxruntime-genai's builder and
by Optimum. A tensor that several nodes use (a head tied to the embedding) is counted once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

# What a tensor is for, by its name, else by that of the node that uses it; the first pattern found wins.
_PURPOSES = (
    ("norm", re.compile(r"norm")),
    ("embedding", re.compile(r"emb(e)?d|wte")),
    ("head", re.compile(r"lm_head|logits|^output")),
    ("attention out", re.compile(r"attn_output|o_proj")),
    ("attention in", re.compile(r"attn_[qkv]|[qkv]_proj|qkv")),
    ("feed-forward in", re.compile(r"ffn_gate|ffn_up|gate_proj|up_proj|gate_up")),
    ("feed-forward out", re.compile(r"ffn_down|down_proj")),
)
_WEIGHT_OPERAND = {  # operator: the first operand that holds weights; those after it are its scales and the like
    "Gather": 0,
    "GatherBlockQuantized": 0,
    "Gemm": 1,
    "MatMul": 1,
    "MatMulNBits": 1,
    "SimplifiedLayerNormalization": 1,
    "SkipSimplifiedLayerNormalization": 2,
}
_LOOK_UPS = ("Gather", "GatherBlockQuantized")
_TRANSPARENT = ("Cast", "DequantizeLinear", "Reshape", "Transpose")  # between a weight and its use
_BESIDE = {".carry": "block carry", ".adapter": "adapter"}  # see ``linear``: beside a matrix, no parameters of its own


@dataclass(slots=True, kw_only=True)
class WeightUse:
    """One stored weight with its scales; ``read_by_pass`` is false for a table of which a pass reads k rows only."""

    purposes: set[str] = field(default_factory=set)
    precision: str
    parameters: int
    stored_bytes: int
    read_by_pass: bool = False


def weight_uses(graph: onnx.GraphProto) -> list[WeightUse]:
    """Every weight of ``graph``, in the order of use."""
    return list(_Walk(graph).uses().values())


def accuracy_level(graph: onnx.GraphProto) -> int | None:
    """The lowest of all ``MatMulNBits``; None if there are none. Unset counts as 0."""
    return min(
        (_attributes(node).get("accuracy_level", 0) for node in graph.node if node.op_type == "MatMulNBits"),
        default=None,
    )


class _Walk:
    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._initializers: dict[str, onnx.TensorProto] = {tensor.name: tensor for tensor in graph.initializer}
        self._producers: dict[str, onnx.NodeProto] = {name: node for node in graph.node for name in node.output}

    def uses(self) -> dict[tuple[str, ...], WeightUse]:
        found: dict[tuple[str, ...], WeightUse] = {}
        for node in self._graph.node:
            operands = self._weight_operands(node)
            if not operands:
                continue
            weight, *companions = operands
            use = found.setdefault(
                _storage(weight),
                WeightUse(
                    precision=_precision(node, weight),
                    parameters=_parameters(node, weight),
                    stored_bytes=sum(_stored_bytes(tensor) for tensor in (weight, *companions)),
                ),
            )
            use.purposes.add(_purpose(node, weight))
            use.read_by_pass |= node.op_type not in _LOOK_UPS
        return found

    def _weight_operands(self, node: onnx.NodeProto) -> list[onnx.TensorProto]:
        first = _WEIGHT_OPERAND.get(node.op_type)
        if first is None or first >= len(node.input) or (weight := self._origin(node.input[first])) is None:
            return []
        if node.op_type in _LOOK_UPS and len(weight.dims) < 2:
            return []  # a constant shape or position, not a table
        return [weight, *filter(None, map(self._origin, node.input[first + 1 :]))]

    def _origin(self, name: str) -> onnx.TensorProto | None:
        """The stored tensor that reaches a node as ``name``, if there is one."""
        producer = self._producers.get(name)
        while producer is not None and producer.op_type in _TRANSPARENT:
            name = producer.input[0]
            producer = self._producers.get(name)
        return self._initializers.get(name)


def _purpose(node: onnx.NodeProto, weight: onnx.TensorProto) -> str:
    names: Iterator[str] = (
        kind for text in (weight.name, node.name) for kind, pattern in _PURPOSES if pattern.search(text)
    )
    purpose = next(names, "other")
    return "head" if purpose == "embedding" and node.op_type not in _LOOK_UPS else purpose


def _precision(node: onnx.NodeProto, weight: onnx.TensorProto) -> str:
    attributes = _attributes(node)
    if "block_size" in attributes:
        return f"int{attributes.get('bits', 4)}, blocks of {attributes['block_size']}"
    kind = str(helper.tensor_dtype_to_np_dtype(weight.data_type))
    beside = next((words for ending, words in _BESIDE.items() if weight.name.endswith(ending)), None)
    return kind if beside is None else f"{kind}, {beside}"


def _parameters(node: onnx.NodeProto, weight: onnx.TensorProto) -> int:
    if weight.name.endswith(tuple(_BESIDE)):
        return 0
    stored = int(np.prod(weight.dims, dtype=np.int64))
    if weight.data_type == onnx.TensorProto.UINT8:
        return stored * 8 // int(_attributes(node).get("bits", 4))
    return stored


def _stored_bytes(tensor: onnx.TensorProto) -> int:
    bits = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
    return int(np.prod(tensor.dims, dtype=np.int64)) * bits // 8


def _storage(tensor: onnx.TensorProto) -> tuple[str, ...]:
    """The same for two tensors that are one region of the data file."""
    place = {entry.key: entry.value for entry in tensor.external_data}
    return (place["location"], place.get("offset", "0")) if "location" in place else (tensor.name,)


def _attributes(node: onnx.NodeProto) -> dict[str, int]:
    return {entry.name: entry.i for entry in node.attribute if entry.type == onnx.AttributeProto.INT}
