"""The codec ``odrive-ascii``: ODrive's ASCII protocol. Velocity commands out, velocity and errors back; bytes only.

    [link.odrive-ascii]
    errors = "axis{}.active_errors"
    [link.odrive-ascii.left]
    motor = 0
    turns_per_unit = 1.59

For each axis a frame has the lines ``v MOTOR VELOCITY 0``, ``f MOTOR`` (answered by ``POSITION VELOCITY``) and
``r axisMOTOR.active_errors`` (answered by a whole number), each with the check sum that ODrive takes and then answers
with: ``*`` and the exclusive-or of the bytes before it, as a decimal. Velocities are turns a second; an axis' unit
times ``turns_per_unit``. Answers name no motor: they belong to a frame when exactly one velocity per axis and then one
number per axis have come, in this order; anything else is dropped, because a wheel's speed must not be taken for
another's. Firmware before 0.6 calls the errors ``axis{}.error``.

Sources: docs.odriverobotics.com (ASCII protocol), firmware 0.5.x ``ascii_protocol.cpp`` for the check sum and the
watchdog: every ``v`` feeds it, and when it bites, the axis is disarmed and coasts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import xor
from typing import ClassVar

from edgeguard.config.reader import Table
from edgeguard.link.carried import Carries
from edgeguard.link.text_line import NUMBER
from edgeguard.types.wire import FLOAT32_MAX, LONGEST_LIFE_MS, Action, Command, Echo, MotorFlag, WireMessage

_VELOCITY = re.compile(rf"v (\d+) ({NUMBER}) 0".encode())
_REQUEST = re.compile(rb"f \d+|r \S+")
_MOVES = re.compile(rf"({NUMBER}) ({NUMBER})".encode())
_ERRORS = re.compile(rb"\d+")
_LONGEST_LINE = 256  # MAX_LINE_LENGTH of the firmware
_LONG_NUMBER = -1.2345678e-05


class OdriveCodec:
    """Encodes and decodes for one plant. ``motors`` gives each axis' motor, ``turns`` its turns per unit."""

    name: ClassVar[str] = "odrive-ascii"
    carries = Carries.MEASURED | Carries.CHECK
    note = (
        "ODrive's watchdog is off until axis.config.enable_watchdog is set; when it bites, the axis is disarmed: it "
        "coasts, and stays so until its errors are cleared."
    )

    def __init__(self, *, motors: Mapping[str, int], turns: Mapping[str, float], errors: str) -> None:
        self._motors = dict(motors)
        self._turns = dict(turns)
        self._errors = {name: errors.replace("{}", str(motor)) for name, motor in motors.items()}
        self._open = b""
        self._commanded: dict[str, float] = {}
        self._moving: list[float] = []
        self._faults: list[int] = []
        self.corrupt = 0

    @classmethod
    def from_table(cls, axes: Sequence[str], table: Table, key: bytes | None) -> OdriveCodec:  # noqa: ARG003 (cobs has one)
        """From ``[link.odrive-ascii]``; what is wrong with it goes to the table's problems."""
        errors = table.text("errors", default="axis{}.active_errors")
        motors, turns = {}, {}
        for axis in axes:
            own = table.table(axis)
            motors[axis] = own.integer("motor", low=0, high=15)
            turns[axis] = own.number("turns_per_unit", default=1.0)
            if turns[axis] == 0:
                own.refuse("turns_per_unit", "0 turns nothing; negative turns the other way")
            own.close()
        if len(set(motors.values())) < len(motors):
            table.refuse("motor", "two axes name the same motor")
        return cls(motors=motors, turns=turns, errors=errors)

    @property
    def command_bytes(self) -> int:
        command = Command(
            axes=dict.fromkeys(self._motors, _LONG_NUMBER), action=Action.MOVE, session=0, sequence=0, life_ms=0
        )
        return len(self.encode(command))

    @property
    def echo_bytes(self) -> int:
        return (2 * len(repr(_LONG_NUMBER)) + len(" *255\r\n") + len("4294967295*255\r\n")) * len(self._motors)

    def encode(self, message: WireMessage) -> bytes:
        """The lines of one command, or of the answers to one. ``TypeError`` for a handshake."""
        if isinstance(message, Command):
            moves = [f"v {motor} {self._said(message.axes[name], name)} 0" for name, motor in self._motors.items()]
            asks = [f"f {motor}" for motor in self._motors.values()]
            return b"".join(map(_line, [*moves, *asks, *(f"r {path}" for path in self._errors.values())]))
        if isinstance(message, Echo):
            moving = [f"0 {self._said(message.axes[name] or 0.0, name)}" for name in self._motors]
            faults = [str(int(MotorFlag.FAULT in message.flags)) for _ in self._motors]
            return b"".join(map(_line, [*moving, *faults]))
        raise TypeError(f"a {type(message).__name__} has no line here")

    def feed(self, data: bytes) -> list[WireMessage]:
        """The messages that ``data`` completes. What is damaged or out of order is counted and dropped."""
        *lines, rest = (self._open + data).split(b"\n")
        self._open = rest[: _LONGEST_LINE + 1]
        messages = []
        for line in filter(None, (line.rstrip(b"\r") for line in lines)):
            said, star, check = line.partition(b"*")
            if not star or check != b"%d" % reduce(xor, said, 0) or len(line) > _LONGEST_LINE:
                self.corrupt += 1
            elif match := _VELOCITY.fullmatch(said):
                messages += self._take_velocity(int(match[1]), float(match[2]))
            elif match := _MOVES.fullmatch(said):
                self._take_moving(float(match[2]))
            elif _ERRORS.fullmatch(said):
                messages += self._take_fault(int(said))
            elif not _REQUEST.fullmatch(said):
                self.corrupt += 1
        return messages

    def reset(self) -> None:
        """Forget a begun line and half an answer."""
        self._open = b""
        self._commanded.clear()
        self._forget()

    def _said(self, value: float, name: str) -> str:
        return f"{value * self._turns[name]:.9g}"

    def _take_velocity(self, motor: int, turns: float) -> list[WireMessage]:
        """The motor controller's side: a command is complete with the last motor's line."""
        name = next((name for name, known in self._motors.items() if known == motor), None)
        if name is None or abs(turns) > FLOAT32_MAX:
            self.corrupt += 1
            return []
        if name == next(iter(self._motors)):
            self._commanded.clear()
        self._commanded[name] = turns / self._turns[name]
        if self._commanded.keys() != self._motors.keys():
            return []
        axes = {name: self._commanded[name] for name in self._motors}
        self._commanded.clear()
        return [Command(axes=axes, action=Action.MOVE, session=0, sequence=0, life_ms=LONGEST_LIFE_MS)]

    def _take_moving(self, turns: float) -> None:
        if self._faults or len(self._moving) == len(self._motors):  # a new answer begins before the old one was whole
            self.corrupt += 1
            self._forget()
        self._moving.append(turns)

    def _take_fault(self, errors: int) -> list[WireMessage]:
        self._faults.append(errors)
        if len(self._faults) < len(self._motors):
            return []
        moving, flags = self._moving, MotorFlag.FAULT if any(self._faults) else MotorFlag(0)
        self._forget()
        if len(moving) != len(self._motors):
            self.corrupt += 1
            return []
        values = {name: turns / self._turns[name] for name, turns in zip(self._motors, moving, strict=True)}
        axes = {name: value if math.isfinite(value) else None for name, value in values.items()}
        return [Echo(session=0, sequence=0, flags=flags, life_ms=0, axes=axes, controller_ms=0)]

    def _forget(self) -> None:
        self._moving, self._faults = [], []


def _line(said: str) -> bytes:
    return b"%s*%d\n" % (said.encode(), reduce(xor, said.encode(), 0))
