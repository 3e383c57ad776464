"""The codec ``cobs``: edgeguard's own frames, COBS with a CRC-32 or, with a key, SipHash-2-4. Bytes only, no I/O.

What is on the line, what every field means and how a motor controller obeys it is written once, for whoever writes the
firmware too, in ``firmware/README.md``. ``firmware/edgeguard_motor.h`` beside it is that side in C.

A piece that is too long, does not decode, fails its check or is not exactly of the kind it says is counted in
``corrupt`` and dropped: it costs that frame and no other.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from hmac import compare_digest
from typing import ClassVar

from cobs import cobs

from edgeguard.config.reader import Table
from edgeguard.link.carried import Carries
from edgeguard.link.siphash import TAG_BYTES, siphash24
from edgeguard.types.wire import Action, Command, Echo, Hello, MotorFlag, Welcome, WireMessage

_VERSION = 1
_COMMAND, _ECHO, _HELLO, _WELCOME = 1, 2, 3, 4
_ACTION_CODES = {Action.MOVE: 1, Action.STOP: 2, Action.HOLD: 3, Action.TORQUE_OFF: 4}
_ACTIONS = {code: action for action, code in _ACTION_CODES.items()}
_KNOWN_FLAGS = sum(MotorFlag)
_HEADER = struct.Struct("<BBBB")
_CRC = struct.Struct("<I")
_EVERYTHING = Carries.SESSION | Carries.LIFE | Carries.HOLD | Carries.TORQUE_OFF | Carries.ECHO | Carries.CHECK


class CobsCodec:
    """Encodes and decodes for one plant; ``feed`` takes bytes in any chunks and keeps at most one frame of them."""

    name: ClassVar[str] = "cobs"
    note = ""

    def __init__(self, *, axes: Sequence[str], key: bytes | None = None) -> None:
        """``key``: 16 bytes that the motor controller has too; every frame is then authenticated."""
        if not 0 < len(axes) < 256:
            raise ValueError(f"{len(axes)} axes; a frame carries 1 to 255")
        self._axes = tuple(axes)
        self._key = key
        self._check_bytes = _CRC.size if key is None else TAG_BYTES
        self.carries = _EVERYTHING if key is None else _EVERYTHING | Carries.KEY
        self._command = struct.Struct(f"<IHH{len(axes)}f")
        self._echo = struct.Struct(f"<IHHI{len(axes)}f")
        self._hello = struct.Struct("<I")
        self._welcome = struct.Struct("<IIH")
        longest = _HEADER.size + max(self._echo.size, self._welcome.size) + self._check_bytes
        self._longest = cobs.max_encoded_length(longest)
        self._open = b""  # the piece that no zero has ended yet
        self.corrupt = 0

    @classmethod
    def from_table(cls, axes: Sequence[str], table: Table, key: bytes | None) -> CobsCodec:  # noqa: ARG003 (no options)
        """It has no options: both sides know the axes and the key."""
        return cls(axes=axes, key=key)

    @property
    def command_bytes(self) -> int:
        """The length of a command's frame on the line, delimiters included; with 60 axes or more, the greatest."""
        return self._frame_bytes(self._command)

    @property
    def echo_bytes(self) -> int:
        """The same of an echo."""
        return self._frame_bytes(self._echo)

    def encode(self, message: WireMessage) -> bytes:
        """One frame. ``KeyError`` when a command or an echo lacks one of the axes."""
        if isinstance(message, Command):
            values = [message.axes[name] for name in self._axes]
            payload = self._command.pack(message.session, message.sequence, message.life_ms, *values)
            return self._frame(_COMMAND, _ACTION_CODES[message.action], len(values), payload)
        if isinstance(message, Echo):
            measured = [message.axes[name] for name in self._axes]
            readings = [math.nan if value is None else value for value in measured]
            numbers = (message.session, message.sequence, message.life_ms, message.controller_ms)
            return self._frame(_ECHO, int(message.flags), len(readings), self._echo.pack(*numbers, *readings))
        if isinstance(message, Hello):
            return self._frame(_HELLO, 0, message.axis_count, self._hello.pack(message.nonce))
        payload = self._welcome.pack(message.nonce, message.session, message.link_timeout_ms)
        return self._frame(_WELCOME, 0, message.axis_count, payload)

    def feed(self, data: bytes) -> list[WireMessage]:
        """The messages that ``data`` completes, in order. What is damaged is counted in ``corrupt`` and dropped."""
        first, *rest = data.split(b"\0")
        pieces = [self._open + first, *rest]
        # One byte above the longest is enough to know that the piece is too long: that bounds the buffer.
        self._open = pieces.pop()[: self._longest + 1]
        messages = []
        for piece in filter(None, pieces):
            message = self._decode(piece)
            if message is None:
                self.corrupt += 1
            else:
                messages.append(message)
        return messages

    def reset(self) -> None:
        """Forget a begun frame: the next bytes come from another connection."""
        self._open = b""

    def _frame_bytes(self, payload: struct.Struct) -> int:
        longest: int = cobs.max_encoded_length(_HEADER.size + payload.size + self._check_bytes)
        return longest + 2

    def _frame(self, kind: int, detail: int, axis_count: int, payload: bytes) -> bytes:
        body = _HEADER.pack(_VERSION, kind, detail, axis_count) + payload
        stuffed: bytes = cobs.encode(body + self._check(body))
        return b"\0" + stuffed + b"\0"

    def _check(self, body: bytes) -> bytes:
        return _CRC.pack(zlib.crc32(body)) if self._key is None else siphash24(self._key, body)

    def _decode(self, piece: bytes) -> WireMessage | None:
        if len(piece) > self._longest:
            return None
        try:
            packet = cobs.decode(piece)
        except cobs.DecodeError:
            return None
        body, check = packet[: -self._check_bytes], packet[-self._check_bytes :]
        if len(body) < _HEADER.size or not compare_digest(check, self._check(body)):
            return None
        version, kind, detail, axis_count = _HEADER.unpack_from(body)
        if version != _VERSION:
            return None
        payload = body[_HEADER.size :]
        if kind == _HELLO and len(payload) == self._hello.size:
            return Hello(nonce=self._hello.unpack(payload)[0], axis_count=axis_count)
        if kind == _WELCOME and len(payload) == self._welcome.size:
            nonce, session, link_timeout_ms = self._welcome.unpack(payload)
            return Welcome(nonce=nonce, session=session, axis_count=axis_count, link_timeout_ms=link_timeout_ms)
        if axis_count != len(self._axes):
            return None
        if kind == _COMMAND and len(payload) == self._command.size and detail in _ACTIONS:
            return self._read_command(payload, action=_ACTIONS[detail])
        if kind == _ECHO and len(payload) == self._echo.size:
            return self._read_echo(payload, flags=MotorFlag(detail & _KNOWN_FLAGS))
        return None

    def _read_command(self, payload: bytes, *, action: Action) -> Command | None:
        session, sequence, life_ms, *values = self._command.unpack(payload)
        if not all(map(math.isfinite, values)):
            return None
        axes = dict(zip(self._axes, values, strict=True))
        return Command(axes=axes, action=action, session=session, sequence=sequence, life_ms=life_ms)

    def _read_echo(self, payload: bytes, *, flags: MotorFlag) -> Echo:
        session, sequence, life_ms, controller_ms, *values = self._echo.unpack(payload)
        axes = {name: value if math.isfinite(value) else None for name, value in zip(self._axes, values, strict=True)}
        return Echo(
            session=session,
            sequence=sequence,
            flags=flags,
            life_ms=life_ms,
            axes=axes,
            controller_ms=controller_ms,
        )
