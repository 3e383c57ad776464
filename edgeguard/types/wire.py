"""What crosses the wire between the guard and the motor controller, and how the link stands.

Both sides speak axes; neither knows the model's words. A life is counted from the frame's arrival, in milliseconds,
because the two clocks are not comparable. Knows nothing of bytes (``edgeguard.link``). A value that no frame could
carry is a ``ValueError`` at construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import Literal

FLOAT32_MAX = 3.4028234663852886e38
"""The largest finite float32 (IEEE 754: (2 - 2**-23) * 2**127); an axis value travels as one."""

SEQUENCE_MODULUS = 1 << 16

LONGEST_LIFE_MS = (1 << 16) - 1
"""The greatest life that a command carries; also that of a command whose protocol carries none."""

NS_PER_BYTE_AT_1_BAUD = 10 * 1_000_000_000
"""One byte on a serial line is ten bits: start, eight data, stop."""

Expiry = Literal["per_frame", "silence", "none"]
"""What ends a command that nobody renews: the life in its own frame, the receiver's watchdog, or nothing."""


class Action(str, Enum):
    """What the motor controller is asked to do."""

    MOVE = "move"  # follow the axes
    STOP = "stop"  # follow the axes as far as they lead towards rest, never faster; obeyed in every state
    HOLD = "hold"  # come to rest at the controller's own deceleration and stay there under power
    TORQUE_OFF = "torque_off"  # cut the power and coast


class MotorFlag(IntFlag):
    """What the motor controller says of itself, beside its measurements. The values are the bits on the wire."""

    MOVING = 1
    EXPIRED = 2  # a life or the link time-out ended, and no command has been taken up since
    FAULT = 4
    ESTOP = 8
    LATCHED = 16  # it will not move again before the next handshake


class Feedback(str, Enum):
    """What comes back from the motor controller, by the codec that it speaks."""

    ECHO = "echo"  # which command it took, what it measures, whether it moves
    MEASURED = "measured"  # what its axes do, and no more
    NONE = "none"  # nothing


class LinkState(str, Enum):
    """How the link stands."""

    UP = "up"  # a session is agreed: commands go out
    HANDSHAKING = "handshaking"  # the port is open, the motor controller has not answered
    LOST = "lost"  # there is no port; it is being retried


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command as the motor controller takes it.

    ``life_ms`` is the least of the command's remaining life and the link time-out. ``sequence`` wraps (RFC 1982).
    """

    axes: Mapping[str, float]
    action: Action
    session: int
    sequence: int
    life_ms: int

    def __post_init__(self) -> None:
        for name, value in self.axes.items():
            if not abs(value) <= FLOAT32_MAX:  # written so that NaN fails too
                raise ValueError(f"axis {name!r}: {value!r} is not a finite float32")
        _check_range("session", self.session, bits=32)
        _check_range("sequence", self.sequence, bits=16)
        _check_range("life_ms", self.life_ms, bits=16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """The motor controller's reply to a command.

    ``sequence`` is the last one it accepted, ``life_ms`` what is left of that command's life, ``axes`` what it
    measures (``None``: no reading), ``controller_ms`` its own clock (wraps at 2**32).
    """

    session: int
    sequence: int
    flags: MotorFlag
    life_ms: int
    axes: Mapping[str, float | None]
    controller_ms: int

    def __post_init__(self) -> None:
        _check_range("session", self.session, bits=32)
        _check_range("sequence", self.sequence, bits=16)
        _check_range("life_ms", self.life_ms, bits=16)
        _check_range("controller_ms", self.controller_ms, bits=32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """The guard asks for a session. The same nonce again is the same question: its answer was lost."""

    nonce: int
    axis_count: int

    def __post_init__(self) -> None:
        _check_range("nonce", self.nonce, bits=32)
        _check_range("axis_count", self.axis_count, bits=8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """The motor controller's answer to the hello with this ``nonce``.

    ``session`` is a number it drew, or 0 when it refuses because it has another ``axis_count``.
    ``link_timeout_ms`` is how long it waits for a command before it stops by itself.
    """

    nonce: int
    session: int
    axis_count: int
    link_timeout_ms: int

    def __post_init__(self) -> None:
        _check_range("nonce", self.nonce, bits=32)
        _check_range("session", self.session, bits=32)
        _check_range("axis_count", self.axis_count, bits=8)
        _check_range("link_timeout_ms", self.link_timeout_ms, bits=16)


WireMessage = Command | Echo | Hello | Welcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A command on its way. ``written`` is false while the port has not taken all of ``frame``."""

    command: Command
    frame: bytes
    written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStatus:
    """How the link stands, and the last echo of the present session.

    ``echo_received_ns``: how old the echo is, by the monotonic clock; one of a numbered command counts from when that
    was sent, so that a slow line, or a guard that was paused, does not make old measurements new.
    ``generation`` rises with every session, so that whoever sees it change drops what belongs to an earlier one.
    ``problem`` is for people: why the link is not up. The rest are counters since the start.
    """

    state: LinkState
    feedback: Feedback = Feedback.ECHO
    generation: int = 0
    session: int | None = None
    echo: Echo | None = None
    echo_received_ns: int | None = None
    controller_timeout_ms: int | None = None  # the motor controller's own link time-out, as its welcome said
    problem: str | None = None
    written: int = 0  # frames that the port has taken whole
    superseded: int = 0  # frames that a newer one replaced before they were begun
    unsent: int = 0  # commands refused because there was no session
    received: int = 0
    corrupt: int = 0
    foreign: int = 0  # well-formed, but of another session or nonce

    @property
    def up(self) -> bool:
        return self.state is LinkState.UP


def is_newer(sequence: int, than: int) -> bool:
    """Serial number arithmetic of RFC 1982 for 16 bits: a number is newer than the 32,767 before it."""
    return 0 < (sequence - than) % SEQUENCE_MODULUS < SEQUENCE_MODULUS // 2


def wire_time_ns(n_bytes: int, *, baud: int) -> int:
    """How long ``n_bytes`` are on the line (8N1), rounded up."""
    return -(-n_bytes * NS_PER_BYTE_AT_1_BAUD // baud)


def _check_range(name: str, value: int, *, bits: int) -> None:
    if not 0 <= value < 1 << bits:
        raise ValueError(f"{name} = {value} does not fit {bits} bits without a sign")
