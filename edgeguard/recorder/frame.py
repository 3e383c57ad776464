"""The frames of the flight log, sans I/O: records in bytes that survive a power cut and a failing disk.

A frame is ``F5 E6 | u8 kind | u32 length | u32 crc | payload``, little-endian; ``crc`` is the CRC-32 of zlib over kind,
length and payload. The first byte occurs in no UTF-8 text. A reader that meets anything else searches for the next
whole frame, so that damage costs what it touches: it is reported with its place, never raised.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

MARK = b"\xf5\xe6"
_HEAD = struct.Struct("<2sBII")
_CHECKED = struct.Struct("<BI")

FRAME_LIMIT_BYTES = 1 << 20
"""A longer length is damage. The longest frame is a header; configurations have some kilobytes."""


class FrameKind(IntEnum):
    HEADER = 1  # a start of the guard; not compressed, so that people find the configuration in it
    BLOCK = 2  # steps that begin a block: the first holds the core's state, and nothing before it is needed
    STEP = 3  # steps that go on with their block


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    kind: FrameKind
    payload: bytes
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Bytes that are no frame. ``tail``: nothing whole comes after them, as when the power went while writing."""

    offset: int
    n_bytes: int
    tail: bool


def encode_frame(kind: FrameKind, payload: bytes) -> bytes:
    return _HEAD.pack(MARK, kind, len(payload), _crc(kind, payload)) + payload


class FrameReader:
    """Takes bytes in any chunks and gives frames and damage, in their order."""

    def __init__(self) -> None:
        self._open = b""
        self._offset = 0  # of the first open byte
        self._damaged = 0  # bytes before it that are no frame

    def feed(self, data: bytes) -> list[Frame | Damage]:
        """What ``data`` completes. A frame that has only begun waits for the rest."""
        self._open += data
        return self._take(final=False)

    def finish(self) -> list[Frame | Damage]:
        """No more bytes will come: whatever waits is no whole frame."""
        found = self._take(final=True)
        if self._damaged:
            found.append(self._damage(tail=True))
        return found

    def _take(self, *, final: bool) -> list[Frame | Damage]:
        found: list[Frame | Damage] = []
        at, end = 0, len(self._open)
        while at < end:
            length = self._frame_length(at)
            if length > 0:
                if self._damaged:
                    found.append(self._damage(tail=False))
                kind = FrameKind(self._open[at + len(MARK)])
                payload = self._open[at + _HEAD.size : at + length]
                found.append(Frame(kind=kind, payload=payload, offset=self._offset))
                at += length
                self._offset += length
            elif length == 0 and not final:
                break
            else:
                here = self._open.find(MARK[:1], at + 1)
                skipped = (end if here < 0 else here) - at
                at += skipped
                self._offset += skipped
                self._damaged += skipped
        self._open = self._open[at:]
        return found

    def _frame_length(self, at: int) -> int:
        """Of the whole frame at ``at``; 0 when more bytes are needed to tell, -1 when there is none."""
        head = self._open[at : at + _HEAD.size]
        if not head.startswith(MARK[: len(head)]):
            return -1
        if len(head) < _HEAD.size:
            return 0
        _, kind, length, crc = _HEAD.unpack(head)
        if kind not in list(FrameKind) or length > FRAME_LIMIT_BYTES:
            return -1
        if at + _HEAD.size + length > len(self._open):
            return 0
        payload = self._open[at + _HEAD.size : at + _HEAD.size + length]
        return _HEAD.size + length if crc == _crc(kind, payload) else -1

    def _damage(self, *, tail: bool) -> Damage:
        n_bytes, self._damaged = self._damaged, 0
        return Damage(offset=self._offset - n_bytes, n_bytes=n_bytes, tail=tail)


def _crc(kind: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_CHECKED.pack(kind, len(payload))))
