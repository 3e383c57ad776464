"""The table of codecs, and what every codec is: a pure translation between messages and bytes.

A new codec is one file and one row here; the contract test of the codecs takes its cases from the table. A codec does
no I/O and knows no time, no port and no policy. What its frames cannot carry it says (``carries``), and what follows
from that for a robot whose computer has died is worked out here, once, for ``check``, ``status`` and the README.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from edgeguard.config.reader import Problems, Table
from edgeguard.errors import ConfigError
from edgeguard.link.carried import Carries
from edgeguard.link.cobs_codec import CobsCodec
from edgeguard.link.mavlink_codec import MavlinkCodec
from edgeguard.link.odrive_codec import OdriveCodec
from edgeguard.link.text_codec import TextCodec
from edgeguard.types.wire import Expiry, Feedback, WireMessage


class Codec(Protocol):
    """One direction's state of one connection. Both sides of the wire use the same class."""

    name: ClassVar[str]
    carries: Carries
    note: str  # what else a person must know of it; may be empty
    corrupt: int  # pieces dropped since the start

    @property
    def command_bytes(self) -> int:
        """The greatest length of a command's frame on the line."""

    @property
    def echo_bytes(self) -> int:
        """The same of what the motor controller answers, which has the other direction of the line to itself."""

    def encode(self, message: WireMessage) -> bytes:
        """One frame, delimiters included."""

    def feed(self, data: bytes) -> list[WireMessage]:
        """The messages that ``data`` completes; anything damaged is counted and dropped, if the protocol can tell."""

    def reset(self) -> None:
        """Forget a begun frame: the next bytes come from another connection."""


CODECS: Mapping[str, Callable[[Sequence[str], Table, bytes | None], Codec]] = MappingProxyType(
    {
        CobsCodec.name: CobsCodec.from_table,
        TextCodec.name: TextCodec.from_table,
        OdriveCodec.name: OdriveCodec.from_table,
        MavlinkCodec.name: MavlinkCodec.from_table,
    }
)


def make_codec(
    name: str, *, axes: Sequence[str], options: Mapping[str, Any] = MappingProxyType({}), key: bytes | None = None
) -> Codec:
    """The codec ``name`` for these axes, in the plant's order, with the options of its own table ``[link.NAME]``.

    ``ConfigError`` when there is none of that name, or its options cannot be used; ``MissingExtraError`` when it needs
    a package that is not there. ``key`` authenticates every frame, where the codec can.
    """
    if name not in CODECS:
        raise ConfigError(f"link.codec: {name!r} is not a codec; known: {', '.join(CODECS)}")
    problems = Problems("")
    table = Table(options, path=f"link.{name}", problems=problems)
    codec = CODECS[name](axes, table, key)
    table.close()
    if key is not None and Carries.KEY not in codec.carries:
        problems.add("link.key_file", f"the codec {name} cannot authenticate its frames; cobs can")
    if problems.found:
        raise ConfigError([problem.removeprefix(": ") for problem in problems.found])
    return codec


def expiry_of(codec: Codec, *, watchdog: bool) -> Expiry:
    """What ends a command that nobody renews; ``watchdog``: the receiver is said to have one of its own."""
    if Carries.LIFE in codec.carries:
        return "per_frame"
    return "silence" if watchdog else "none"


def feedback_of(codec: Codec) -> Feedback:
    """What comes back from the motor controller."""
    if Carries.ECHO in codec.carries:
        return Feedback.ECHO
    return Feedback.MEASURED if Carries.MEASURED in codec.carries else Feedback.NONE
