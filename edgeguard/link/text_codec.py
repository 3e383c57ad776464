"""The codec ``text``: one line per command from a format string of the configuration, for whatever reads lines.

    [link.text]
    format = "v {linear:.3f} {angular:.3f}\\n"
    feedback = "odom {linear} {angular} {_}"
    checksum = "xor"

A place is an axis' name with Python's number format; ``{life_ms}`` and ``{action}`` (move, stop, hold, torque_off) are
there for receivers that can use them, and with ``{life_ms}`` every command carries its life. ``feedback`` is the line
that the motor controller says of itself: places are axes, each ``{_}`` is a word of no interest, ``nan`` is no reading.
``checksum`` is appended to every line of both sides, before its end: ``*`` and two hexadecimal digits, the
exclusive-or of the bytes before the star, as in NMEA 0183 (``xor``); or eight, their CRC-32 (``crc32``).

Without a check sum a damaged digit is taken at its word. There is no session and no sequence number: an old line that
comes late is obeyed. A damaged line costs itself, and the next one when it was its end that was damaged.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import xor
from types import MappingProxyType
from typing import ClassVar

from edgeguard.config.reader import Table
from edgeguard.link.carried import Carries
from edgeguard.link.text_line import NUMBER, WORD, TextLine
from edgeguard.types.wire import FLOAT32_MAX, LONGEST_LIFE_MS, Action, Command, Echo, MotorFlag, WireMessage

CHECKSUMS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {
        "none": lambda line: b"",  # noqa: ARG005 (the others need it)
        "xor": lambda line: b"*%02X" % reduce(xor, line, 0),
        "crc32": lambda line: b"*%08X" % zlib.crc32(line),
    }
)

_IGNORED = "_"
_PLACES = {"life_ms": r"\d{1,5}", "action": "|".join(action.value for action in Action)}
_BROUGHT = {"life_ms": Carries.LIFE, "action": Carries.HOLD | Carries.TORQUE_OFF}
_LONGEST_LINE = 1_000
_LONG_NUMBERS = (-999_999.999, -1.2345678e-05)
"""For the greatest length of a line: of axes below a million in magnitude."""


class TextCodec:
    """Encodes and decodes for one plant; ``feed`` keeps at most one line."""

    name: ClassVar[str] = "text"
    note = ""

    def __init__(
        self, *, axes: Sequence[str], command: str, feedback: str | None = None, checksum: str = "none"
    ) -> None:
        """``ValueError`` names the format that cannot be used, and the way out."""
        self._axes = tuple(axes)
        self._sum = CHECKSUMS[checksum]
        self._command = _command_line(command, axes)
        self._feedback = None if feedback is None else _feedback_line(feedback, axes)
        self.carries = Carries(0)
        for name in self._command.names:
            self.carries |= _BROUGHT.get(name, Carries(0))
        if checksum != "none":
            self.carries |= Carries.CHECK
        if feedback is not None:
            self.carries |= Carries.MEASURED
        self._open = b""
        self.corrupt = 0

    @classmethod
    def from_table(cls, axes: Sequence[str], table: Table, key: bytes | None) -> TextCodec:  # noqa: ARG003 (cobs has one)
        """From ``[link.text]``; what is wrong with it goes to the table's problems."""
        command, feedback = table.text("format"), table.text("feedback", default=None)
        checksum = table.text("checksum", default="none", among=tuple(CHECKSUMS))
        try:
            return cls(axes=axes, command=command, feedback=feedback, checksum=checksum)
        except ValueError as error:
            name, _, problem = str(error).partition(": ")
            if command:  # that it is missing has been said
                table.refuse(name, problem)
            return cls(axes=(), command="\n")

    @property
    def command_bytes(self) -> int:
        """For axes below a million in magnitude."""
        axes = (dict.fromkeys(self._axes, value) for value in _LONG_NUMBERS)
        return max(len(self.encode(_command(one, action=Action.TORQUE_OFF))) for one in axes)

    @property
    def echo_bytes(self) -> int:
        """What the motor controller's own format makes of its numbers is not known: those of its shortest floats."""
        if self._feedback is None:
            return 0
        return max(len(self.encode(_echo(dict.fromkeys(self._axes, value)))) for value in _LONG_NUMBERS)

    def encode(self, message: WireMessage) -> bytes:
        """One line. ``TypeError`` for what has none: a handshake, or an echo without a feedback format."""
        if isinstance(message, Command):
            values = {**message.axes, "life_ms": message.life_ms, "action": message.action.value}
            return self._closed(self._command.write(values))
        if isinstance(message, Echo) and self._feedback is not None:
            readings = {name: "nan" if value is None else repr(value) for name, value in message.axes.items()}
            return self._closed(self._feedback.write({**readings, _IGNORED: "-"}))
        raise TypeError(f"a {type(message).__name__} has no line here")

    def feed(self, data: bytes) -> list[WireMessage]:
        """The messages of the lines that ``data`` completes. What no format has written is counted and dropped."""
        *lines, rest = (self._open + data).split(b"\n")
        self._open = rest[: _LONGEST_LINE + 1]
        messages = []
        for line in filter(None, (line.rstrip(b"\r") for line in lines)):
            message = self._decode(line)
            if message is None:
                self.corrupt += 1
            else:
                messages.append(message)
        return messages

    def reset(self) -> None:
        """Forget a begun line."""
        self._open = b""

    def _closed(self, line: str) -> bytes:
        """With the check sum between the line and its end."""
        said = line.rstrip("\r\n").encode()
        return said + self._sum(said) + line.encode()[len(said) :]

    def _decode(self, line: bytes) -> WireMessage | None:
        said = line[: len(line) - len(self._sum(b""))]
        if line != said + self._sum(said) or len(line) > _LONGEST_LINE:
            return None
        text = said.decode("ascii", errors="replace")
        command = self._command.read(text)
        if command is not None:
            return self._read_command(command)
        feedback = None if self._feedback is None else self._feedback.read(text)
        if feedback is None:
            return None
        values = {name: float(feedback.get(name, "nan")) for name in self._axes}
        return _echo({name: value if math.isfinite(value) else None for name, value in values.items()})

    def _read_command(self, texts: Mapping[str, str]) -> Command | None:
        axes = {name: float(texts[name]) for name in self._axes}
        life_ms = int(texts.get("life_ms", LONGEST_LIFE_MS))
        if life_ms > LONGEST_LIFE_MS or any(abs(value) > FLOAT32_MAX for value in axes.values()):
            return None
        return _command(axes, action=Action(texts.get("action", Action.MOVE)), life_ms=life_ms)


def _command_line(form: str, axes: Sequence[str]) -> TextLine:
    try:
        if not form.endswith("\n"):
            raise ValueError(f"{form!r} must end with a line end: \\n or \\r\\n")
        line = TextLine(form, places={**dict.fromkeys(axes, NUMBER), **_PLACES})
        for axis in axes:
            if axis not in line.names:
                raise ValueError(f"{{{axis}}} is missing; every axis needs its place")
        for value in _LONG_NUMBERS:
            said = line.write({**dict.fromkeys(axes, value), "life_ms": LONGEST_LIFE_MS, "action": "move"})
            if line.read(said.rstrip("\r\n")) is None:
                raise ValueError(f"writes {said!r}, which is no plain number; use a form such as {{name:.3f}}")
    except ValueError as error:
        raise ValueError(f"format: {error}") from error
    return line


def _feedback_line(form: str, axes: Sequence[str]) -> TextLine:
    try:
        line = TextLine(form.rstrip("\r\n") + "\n", places={**dict.fromkeys(axes, f"{NUMBER}|nan"), _IGNORED: WORD})
        if not set(axes).intersection(line.names):
            raise ValueError(f"{form!r} measures no axis; give one its place, such as {{{axes[0]}}}")
    except ValueError as error:
        raise ValueError(f"feedback: {error}") from error
    return line


def _command(axes: Mapping[str, float], *, action: Action = Action.MOVE, life_ms: int = LONGEST_LIFE_MS) -> Command:
    return Command(axes=axes, action=action, session=0, sequence=0, life_ms=life_ms)


def _echo(axes: Mapping[str, float | None]) -> Echo:
    return Echo(session=0, sequence=0, flags=MotorFlag(0), life_ms=0, axes=axes, controller_ms=0)
