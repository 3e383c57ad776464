"""Nodes and stored tensors of an ONNX graph, read and written without the ``onnx`` package (onnx.proto, IR 13).

Elements keep their bits whatever type they have: what is moved is not interpreted. Types of four bits are unpacked to
a byte each while they are moved. Raises ``ValueError`` for bytes that are no such message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeguard.engine.protobuf import Message

_INPUT, _OUTPUT, _NODE_NAME, _OPERATOR, _ATTRIBUTE = 1, 2, 3, 4, 5  # of a node
_NAME, _INTEGER, _SUBGRAPH, _INTEGERS, _SUBGRAPHS = 1, 3, 6, 8, 11  # of an attribute
_DIMS, _TYPE, _TENSOR_NAME, _RAW, _EXTERNAL, _LOCATION = 1, 2, 8, 9, 13, 14  # of a tensor
_KEY, _VALUE = 1, 2  # of an entry of external data
# From the description of an input or output down to one dimension's size.
_TYPE_OF_VALUE, _TENSOR_OF_TYPE, _SHAPE_OF_TENSOR, _DIMENSION, _SIZE = 2, 1, 2, 1, 1

_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2, 17: 1, 18: 1, 19: 1, 20: 1}
_NIBBLES = (21, 22)  # uint4 and int4, two in a byte, the even one low


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Node:
    """One operator. Two are never equal: a node is that place in its graph."""

    message: Message
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Message]

    @classmethod
    def parse(cls, content: bytes) -> Node:
        """From its bytes."""
        message = Message.parse(content)
        attributes = map(Message.parse, message.every(_ATTRIBUTE))
        return cls(
            message=message,
            operator=message.text(_OPERATOR),
            inputs=tuple(message.texts(_INPUT)),
            outputs=tuple(message.texts(_OUTPUT)),
            attributes={attribute.text(_NAME): attribute for attribute in attributes},
        )

    def integer(self, name: str, default: int = 0) -> int:
        """An attribute, or what it is if it is not set."""
        return self.attributes[name].integer(_INTEGER) if name in self.attributes else default

    def integers(self, name: str) -> list[int]:
        """A list in an attribute; empty if it is not set."""
        return self.attributes[name].integers(_INTEGERS) if name in self.attributes else []

    def mentions(self, name: str) -> bool:
        """Whether it reads ``name``; a graph inside it may, if the name's text occurs there."""
        if name in self.inputs:
            return True
        inside = [part for one in self.attributes.values() for part in (*one.every(_SUBGRAPH), *one.every(_SUBGRAPHS))]
        return any(name.encode() in part for part in inside)

    def changed(self, *, inputs: Sequence[str], output: str, integers: Mapping[str, int]) -> Node:
        """A node like this one, called as its one output is, with other operands and some integers as attributes."""
        message = Message(list(self.message.fields))
        message.put(_INPUT, *inputs)
        message.put(_OUTPUT, output)
        message.put(_NODE_NAME, output)
        attributes = []
        for name, attribute in self.attributes.items():
            copy = Message(list(attribute.fields))
            if name in integers:
                copy.put(_INTEGER, integers[name])
            attributes.append(copy.encode())
        message.put(_ATTRIBUTE, *attributes)
        return Node.parse(message.encode())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tensor:
    """One stored tensor."""

    message: Message
    name: str
    shape: tuple[int, ...]
    kind: int

    @classmethod
    def parse(cls, content: bytes) -> Tensor:
        """From its bytes."""
        message = Message.parse(content)
        return cls(
            message=message,
            name=message.text(_TENSOR_NAME),
            shape=tuple(message.integers(_DIMS)),
            kind=message.integer(_TYPE),
        )

    def read(self, folder: Path) -> NDArray[Any] | None:
        """Its elements' bits, flat, mapped from the file in ``folder`` if that has them; None if stored otherwise."""
        count = int(np.prod(self.shape, dtype=np.int64))
        nibbles = self.kind in _NIBBLES
        if not nibbles and self.kind not in _BYTES:
            return None
        dtype = np.dtype(f"u{1 if nibbles else _BYTES[self.kind]}")
        stored = (count + 1) // 2 if nibbles else count
        elements: NDArray[Any]
        if self.message.integer(_LOCATION):
            entries = map(Message.parse, self.message.every(_EXTERNAL))
            place = {entry.text(_KEY): entry.text(_VALUE) for entry in entries}
            offset = int(place.get("offset", "0"))
            elements = np.memmap(folder / place["location"], dtype=dtype, mode="r", offset=offset, shape=(stored,))
        elif raw := self.message.every(_RAW):
            elements = np.frombuffer(raw[0], dtype=dtype, count=stored)
        else:
            return None
        if not nibbles:
            return elements
        return np.stack([elements & 0x0F, elements >> 4], axis=-1).reshape(-1)[:count]

    def with_elements(self, name: str, elements: NDArray[Any], *, shape: Sequence[int]) -> Tensor:
        """A tensor of the same type that has these elements (as ``read`` gives them) in itself."""
        flat = np.ascontiguousarray(elements).reshape(-1)
        if self.kind in _NIBBLES:
            flat = np.concatenate([flat, np.zeros(len(flat) % 2, np.uint8)])
            flat = flat[0::2] | flat[1::2] << 4
        message = Message([])
        message.put(_DIMS, *shape)
        message.put(_TYPE, self.kind)
        message.put(_TENSOR_NAME, name)
        message.put(_RAW, flat.tobytes())
        return Tensor(message=message, name=name, shape=tuple(shape), kind=self.kind)


def passing(node: Node) -> Node:
    """A node in the place of this one that puts out its first operand as it is."""
    message = Message(list(node.message.fields))
    message.put(_OPERATOR, "Identity")
    message.put(_INPUT, node.inputs[0])
    message.put(_ATTRIBUTE)
    return Node.parse(message.encode())


def sizes_of(value_info: bytes) -> list[int | None]:
    """The shape of an input or output, as it is described; None where that is a name or nothing."""
    *_, shape = _to_shape(value_info)
    sizes = (Message.parse(dimension) for dimension in shape.every(_DIMENSION))
    return [size.integer(_SIZE) if any(at == _SIZE for at, _, _ in size.fields) else None for size in sizes]


def resized(value_info: bytes, sizes: Mapping[int, int | None]) -> bytes:
    """The description of an input or output with other numbers along these axes; None leaves one open."""
    info, kind, tensor, shape = _to_shape(value_info)
    dimensions = shape.every(_DIMENSION)
    for axis, size in sizes.items():
        dimension = Message([])
        if size is not None:
            dimension.put(_SIZE, size)
        dimensions[axis] = dimension.encode()
    shape.put(_DIMENSION, *dimensions)
    tensor.put(_SHAPE_OF_TENSOR, shape.encode())
    kind.put(_TENSOR_OF_TYPE, tensor.encode())
    info.put(_TYPE_OF_VALUE, kind.encode())
    return info.encode()


def _to_shape(value_info: bytes) -> tuple[Message, Message, Message, Message]:
    """The description, and from one to the next inside it, its type, its tensor's type and its shape."""
    info = Message.parse(value_info)
    kind = Message.parse(info.every(_TYPE_OF_VALUE)[0])
    tensor = Message.parse(kind.every(_TENSOR_OF_TYPE)[0])
    shape = Message.parse(tensor.every(_SHAPE_OF_TENSOR)[0])
    return info, kind, tensor, shape
