"""A graph that computes the logits of its last position, made to compute those of every one of its new tokens.

Only the last is asked for where the head has the whole vocabulary, for it is as dear as many layers. A head that is cut
costs next to nothing, and with all of them a pass can say whether the tokens in it are those that the model would have
chosen: that is how a draft is verified. What picks the last position is one ``Gather``, which becomes an ``Identity``.

Knows ONNX's field numbers (onnx.proto, IR 13). Raises ``ValueError`` for bytes that are no such model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from edgeguard.engine.onnx_parts import Node, Tensor, passing, resized, sizes_of
from edgeguard.engine.protobuf import Message

_GRAPH = 7  # of a model
_NODE, _INITIALIZER, _OUTPUT, _VALUE_INFO = 1, 5, 12, 13  # of a graph
_POSITION = 1  # the axis of (batch, position, row)


def at_every_position(model: bytes, *, logits: str, folder: Path) -> bytes | None:
    """The model with ``logits`` of every position, which may be as it is; None where it is not seen how.

    ``folder`` is where its weights are.
    """
    parts = Message.parse(model)
    graph = Message.parse(parts.every(_GRAPH)[0])
    outputs = {Message.parse(content).text(1): content for content in graph.every(_OUTPUT)}
    sizes = sizes_of(outputs[logits])
    if len(sizes) != 3 or sizes[_POSITION] != 1:
        return model
    nodes = [Node.parse(content) for content in graph.every(_NODE)]
    tensors = {tensor.name: tensor for tensor in map(Tensor.parse, graph.every(_INITIALIZER))}
    picks = [at for at, node in enumerate(nodes) if _picks_the_last(node, tensors, folder=folder)]
    if len(picks) != 1:
        return None
    (at,) = picks
    nodes[at] = passing(nodes[at])
    changed = _behind(nodes[at:])
    outputs[logits] = resized(outputs[logits], {_POSITION: None})
    graph.put(_NODE, *(node.message.encode() for node in nodes))
    graph.put(_OUTPUT, *outputs.values())
    known = (one for one in graph.every(_VALUE_INFO) if Message.parse(one).text(1) not in changed)
    graph.put(_VALUE_INFO, *known)
    parts.put(_GRAPH, graph.encode())
    return parts.encode()


def _picks_the_last(node: Node, tensors: Mapping[str, Tensor], *, folder: Path) -> bool:
    if node.operator != "Gather" or node.integer("axis") != _POSITION or node.inputs[1] not in tensors:
        return False
    index = tensors[node.inputs[1]]
    elements = index.read(folder) if index.shape == (1,) else None
    return elements is not None and elements.view(np.int64).tolist() == [-1]


def _behind(nodes: Iterable[Node]) -> set[str]:
    """What the first of these nodes, which stand in the order of computation, has an influence on."""
    names: set[str] = set()
    for node in nodes:
        if not names or not names.isdisjoint(node.inputs):
            names.update(node.outputs)
    return names
