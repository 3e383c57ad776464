"""Protobuf's wire format, as far as an ONNX file needs it: walk over a message, take one apart, put it together again.

Fields are known by number and wire type only; what they mean is the reader's business. A message that is taken apart
and put together unchanged has the same bytes if its integers were written in the shortest way, as every writer does.
The ``onnx`` package is not needed, for the machine on the robot does not have it.

Raises ``ValueError`` or ``IndexError`` for bytes that are no message.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass

VARINT, BYTES = 0, 2
_FIXED = {1: 8, 5: 4}  # protobuf's other wire types and their bytes
_MASK = (1 << 64) - 1


def walk(content: bytes | mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int, int | None]]:
    """Number, wire type, and value of each integer (then None); for any other field its bytes' start and end."""
    position = start
    while position < end:
        tag, position = _read_varint(content, position)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, position = _read_varint(content, position)
            yield number, kind, value, None
            continue
        if kind == BYTES:
            length, position = _read_varint(content, position)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise ValueError(f"wire type {kind}")
        if position + length > end:
            raise ValueError("a field longer than its message")
        yield number, kind, position, position + length
        position += length
    if position != end:
        raise ValueError("a message that ends inside a field")


@dataclass(slots=True)
class Message:
    """Its fields in order: number, wire type, and the integer or the bytes."""

    fields: list[tuple[int, int, int | bytes]]

    @classmethod
    def parse(cls, content: bytes) -> Message:
        """Take one message apart; those inside it stay bytes."""
        return cls([
            (number, kind, value if stop is None else content[value:stop])
            for number, kind, value, stop in walk(content, 0, len(content))
        ])  # fmt: skip

    def integer(self, number: int, default: int = 0) -> int:
        """The last integer of this number, signed."""
        value = next((value for at, _, value in reversed(self.fields) if at == number), default)
        if not isinstance(value, int):
            raise ValueError(f"field {number} is no integer")
        return value - (1 << 64) if value >> 63 == 1 else value

    def integers(self, number: int) -> list[int]:
        """All of a repeated integer, packed or not; signed."""
        found = []
        for at, _, value in self.fields:
            if at != number:
                continue
            if isinstance(value, int):
                found.append(value)
                continue
            position = 0
            while position < len(value):
                one, position = _read_varint(value, position)
                found.append(one)
        return [value - (1 << 64) if value >> 63 == 1 else value for value in found]

    def every(self, number: int) -> list[bytes]:
        """The bytes of each field of this number."""
        return [value for at, _, value in self.fields if at == number and isinstance(value, bytes)]

    def text(self, number: int) -> str:
        """The last text of this number, or an empty one."""
        return next(reversed(self.every(number)), b"").decode()

    def texts(self, number: int) -> list[str]:
        """All texts of this number, in order."""
        return [value.decode() for value in self.every(number)]

    def put(self, number: int, *values: int | str | bytes) -> None:
        """These values instead of those of this number, in their place (behind all others if there was none)."""
        place = next((at for at, one in enumerate(self.fields) if one[0] == number), len(self.fields))
        self.fields = [one for one in self.fields if one[0] != number]
        self.fields[place:place] = [_field(number, value) for value in values]

    def encode(self) -> bytes:
        """The message as bytes."""
        parts = []
        for number, kind, value in self.fields:
            parts.append(_varint(number << 3 | kind))
            if isinstance(value, int):
                parts.append(_varint(value))
            else:
                parts += [_varint(len(value)), value] if kind == BYTES else [value]
        return b"".join(parts)


def _field(number: int, value: int | str | bytes) -> tuple[int, int, int | bytes]:
    if isinstance(value, int):
        return number, VARINT, value & _MASK
    return number, BYTES, value.encode() if isinstance(value, str) else value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(content: bytes | mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a number longer than 64 bits")
