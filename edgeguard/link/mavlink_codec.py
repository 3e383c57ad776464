"""The codec ``mavlink``: MAVLink 2 to a rover's autopilot (ArduPilot Rover in GUIDED, PX4 in Offboard); bytes only.

    [link.mavlink]
    forward = "linear"
    turn = "angular"
    system = 1

A command is SET_POSITION_TARGET_LOCAL_NED in the body's frame: forward speed in m/s and yaw rate in rad/s, nothing else
(type mask 1511 of ArduPilot's page on guided rovers). ``turn`` is positive to the left, as in ROS (REP 103); MAVLink
counts to the right. Chosen over MANUAL_CONTROL because that carries stick positions, whose speed nobody states. A
HEARTBEAT of a companion computer goes along, and the wish for the two messages below, with every 25th command.

What is measured comes from LOCAL_POSITION_NED and ATTITUDE: the speed along the heading and the yaw rate, one echo with
each pair. A HEARTBEAT of the autopilot whose state is critical, emergency or termination is a fault.

It cannot arm the vehicle, nor change its mode. Frames are found again after damage at the next magic byte that begins
a sound frame, not at the length that a damaged one claims. A message that the dialect ``common`` does not have (an
autopilot has its own) is skipped and is no damage; its check sum covers one byte that only its dialect knows, so it is
sound when some byte makes the sum right, which 255 of 256 damaged frames fail. Needs the extra ``mavlink`` (pymavlink,
which packs, unpacks and knows the check sums; without it ``MissingExtraError``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from edgeguard.config.reader import Table
from edgeguard.errors import MissingExtraError
from edgeguard.link.carried import Carries
from edgeguard.types.wire import FLOAT32_MAX, LONGEST_LIFE_MS, Action, Command, Echo, MotorFlag, WireMessage

_MAGIC = 0xFD
_HEADER, _CRC, _SIGNATURE = 10, 2, 13
_LONGEST_FRAME = _HEADER + 255 + _CRC + _SIGNATURE
_SIGNED = 1
_COMPANION = 191  # MAV_COMP_ID_ONBOARD_COMPUTER
_BODY_NED = 8  # MAV_FRAME_BODY_NED
_VELOCITY_AND_YAW_RATE = 1511
_EVERY = 25
_WANTED_EVERY_US = 50_000
_COMMAND_BYTES, _HEARTBEAT_BYTES, _WISH_BYTES, _TELEMETRY_BYTES = 65, 21, 45, 40
_FAULTY = (5, 6, 8)  # MAV_STATE: critical, emergency, flight termination
_STEPS = frozenset((byte << 8 ^ byte << 3 ^ byte >> 4) & 0xFFFF for byte in range(256))
"""One more byte makes of a check sum its upper half, moved down, xor one of these (CRC-16/MCRF4XX)."""


class MavlinkCodec:
    """Encodes and decodes for one vehicle. ``forward`` and ``turn`` name the axes; either may be missing."""

    name: ClassVar[str] = "mavlink"
    carries = Carries.MEASURED | Carries.CHECK
    note = (
        "ArduPilot Rover stops 3 s after the last command, PX4 leaves Offboard after COM_OF_LOSS_T; somebody else arms "
        "the vehicle and puts it into that mode."
    )

    def __init__(self, *, forward: str | None, turn: str | None, system: int = 1, component: int = 1) -> None:
        self._mavlink = _pymavlink()
        self._forward, self._turn = forward, turn
        self._target = (system, component)
        self._writer = self._mavlink.MAVLink(None, srcSystem=system, srcComponent=_COMPANION)
        self._reader = self._mavlink.MAVLink(None)
        self._buffer = b""
        self._count = 0
        self._attitude: Any = None
        self._flags = MotorFlag(0)
        self.corrupt = 0

    @classmethod
    def from_table(cls, axes: Sequence[str], table: Table, key: bytes | None) -> MavlinkCodec:  # noqa: ARG003 (cobs has one)
        """From ``[link.mavlink]``; what is wrong with it goes to the table's problems."""
        roles = {role: table.text(role, default=None) for role in ("forward", "turn")}
        system = table.integer("system", default=1, low=1, high=255)
        component = table.integer("component", default=1, low=0, high=255)
        for role, axis in roles.items():
            if axis is not None and axis not in axes:
                table.refuse(role, f"{axis!r} is no [[axis]]; known: {', '.join(axes)}")
        for axis in axes:
            if axis not in roles.values():
                table.refuse("forward", f"the axis {axis!r} is neither forward nor turn, and no more can be carried")
        return cls(**roles, system=system, component=component)

    @property
    def command_bytes(self) -> int:
        return _COMMAND_BYTES + _HEARTBEAT_BYTES + 2 * _WISH_BYTES

    @property
    def echo_bytes(self) -> int:
        return 2 * _TELEMETRY_BYTES + _HEARTBEAT_BYTES

    def encode(self, message: WireMessage) -> bytes:
        """The frames of one command, or of what a vehicle says of itself. ``TypeError`` for a handshake."""
        if isinstance(message, Command):
            return self._encode_command(message)
        if isinstance(message, Echo):
            return self._encode_telemetry(message)
        raise TypeError(f"a {type(message).__name__} has no message here")

    def feed(self, data: bytes) -> list[WireMessage]:
        """The commands, or the echoes, that ``data`` completes. Other messages are skipped, damage is counted."""
        self._buffer += data
        messages: list[WireMessage] = []
        while (found := self._next_frame()) is not None:
            message = self._take(found)
            messages += [] if message is None else [message]
        return messages

    def reset(self) -> None:
        """Forget a begun frame and half a measurement."""
        self._buffer, self._attitude = b"", None

    def _encode_command(self, command: Command) -> bytes:
        forward = 0.0 if self._forward is None else command.axes[self._forward]
        turn = 0.0 if self._turn is None else command.axes[self._turn]
        mask = _VELOCITY_AND_YAW_RATE
        zeros = (0.0,) * 3
        numbers = (0, *self._target, _BODY_NED, mask, *zeros, forward, 0.0, 0.0, *zeros, 0.0, -turn)
        frames = [self._mavlink.MAVLink_set_position_target_local_ned_message(*numbers)]
        if self._count % _EVERY == 0:
            frames += [self._heartbeat(kind=18, autopilot=8, state=4), self._wish(32), self._wish(30)]
        self._count += 1
        return b"".join(bytes(frame.pack(self._writer)) for frame in frames)

    def _encode_telemetry(self, echo: Echo) -> bytes:
        """Heading north, so that the speed along it is the one to the north."""
        forward = (echo.axes[self._forward] if self._forward is not None else None) or 0.0
        turn = (echo.axes[self._turn] if self._turn is not None else None) or 0.0
        frames = [
            self._heartbeat(kind=10, autopilot=3, state=5 if MotorFlag.FAULT in echo.flags else 4),
            self._mavlink.MAVLink_attitude_message(echo.controller_ms, 0.0, 0.0, 0.0, 0.0, 0.0, -turn),
            self._mavlink.MAVLink_local_position_ned_message(echo.controller_ms, 0.0, 0.0, 0.0, forward, 0.0, 0.0),
        ]
        return b"".join(bytes(frame.pack(self._writer)) for frame in frames)

    def _heartbeat(self, *, kind: int, autopilot: int, state: int) -> Any:
        """``kind`` 18: an on-board computer, 10: a rover; ``autopilot`` 8: none, 3: ArduPilot; ``state`` 4: active."""
        return self._mavlink.MAVLink_heartbeat_message(kind, autopilot, 0, 0, state, 3)

    def _wish(self, message_id: int) -> Any:
        """MAV_CMD_SET_MESSAGE_INTERVAL (511): 30 is ATTITUDE, 32 LOCAL_POSITION_NED."""
        numbers = (*self._target, 511, 0, float(message_id), float(_WANTED_EVERY_US), 0.0, 0.0, 0.0, 0.0, 0.0)
        return self._mavlink.MAVLink_command_long_message(*numbers)

    def _next_frame(self) -> Any:
        """The first sound frame in the buffer, decoded; what lies before it goes. ``None``: there is none yet."""
        begin = self._buffer.find(_MAGIC)
        while begin >= 0:
            end = self._end_of_frame(begin)
            frame = None if end is None else self._decoded(self._buffer[begin:end])
            if frame is not None:
                self.corrupt += begin > 0
                self._buffer = self._buffer[end:]
                return frame
            begin = self._buffer.find(_MAGIC, begin + 1)
        if len(self._buffer) > _LONGEST_FRAME:
            self.corrupt += 1
            self._buffer = self._buffer[-_LONGEST_FRAME:]
        return None

    def _end_of_frame(self, begin: int) -> int | None:
        """Where the frame that begins there would end; ``None`` while that is not here, or no frame begins so."""
        head = self._buffer[begin : begin + 3]
        if len(head) < 3 or head[2] & ~_SIGNED:
            return None
        end = begin + _HEADER + head[1] + _CRC + (_SIGNATURE if head[2] & _SIGNED else 0)
        return end if end <= len(self._buffer) else None

    def _decoded(self, frame: bytes) -> Any:
        """``None`` when it is damaged; pymavlink's own unknown message where the dialect has none."""
        message_id = int.from_bytes(frame[7:10], "little")
        if message_id not in self._mavlink.mavlink_map:
            body = _HEADER + frame[1]
            so_far = self._mavlink.x25crc(frame[1:body]).crc
            stated = int.from_bytes(frame[body : body + _CRC], "little")
            return self._mavlink.MAVLink_unknown(message_id, frame) if stated ^ so_far >> 8 in _STEPS else None
        try:
            return self._reader.decode(bytearray(frame))
        except self._mavlink.MAVError:
            return None

    def _take(self, frame: Any) -> WireMessage | None:
        kind = frame.get_type()
        if frame.get_srcSystem() != self._target[0]:
            return None
        if kind == "SET_POSITION_TARGET_LOCAL_NED" and frame.type_mask == _VELOCITY_AND_YAW_RATE:
            axes = self._axes(forward=frame.vx, turn=-frame.yaw_rate)
            if any(value is None or abs(value) > FLOAT32_MAX for value in axes.values()):
                return None
            values = {name: value for name, value in axes.items() if value is not None}
            return Command(axes=values, action=Action.MOVE, session=0, sequence=0, life_ms=LONGEST_LIFE_MS)
        if kind == "HEARTBEAT" and frame.autopilot != 8:
            self._flags = MotorFlag.FAULT if frame.system_status in _FAULTY else MotorFlag(0)
        elif kind == "ATTITUDE":
            self._attitude = frame
        elif kind == "LOCAL_POSITION_NED" and self._attitude is not None:
            attitude, self._attitude = self._attitude, None
            yaw = attitude.yaw if math.isfinite(attitude.yaw) else math.nan  # the cosine of infinity is an error
            along = frame.vx * math.cos(yaw) + frame.vy * math.sin(yaw)
            axes = self._axes(forward=along, turn=-attitude.yawspeed)
            return Echo(
                session=0, sequence=0, flags=self._flags, life_ms=0, axes=axes, controller_ms=frame.time_boot_ms
            )
        return None

    def _axes(self, *, forward: float, turn: float) -> dict[str, float | None]:
        said = {self._forward: forward, self._turn: turn}
        return {name: value if math.isfinite(value) else None for name, value in said.items() if name is not None}


def _pymavlink() -> Any:
    """The dialect ``common``: 70 ms to import, and no numpy."""
    try:
        from pymavlink.dialects.v20 import common
    except ImportError as error:
        raise MissingExtraError(package="pymavlink", extra="mavlink", purpose="the codec mavlink") from error
    return common
