"""The table of codecs, and what every codec is: a pure translation between messages and bytes.

A new codec is one file and one row here; the contract test of the codecs takes its cases from the table. A codec does
no I/O and knows no time, no port and no policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Protocol

from edgeguard.errors import ConfigError
from edgeguard.link.cobs_codec import CobsCodec, WireMessage
from edgeguard.types.wire import Expiry


class Codec(Protocol):
    """One direction's state of one connection. Both sides of the wire use the same class."""

    name: ClassVar[str]
    expiry: ClassVar[Expiry]
    guarantee: ClassVar[str]  # what that is worth when the guard is dead, and what no frame can carry: for people
    corrupt: int  # pieces dropped since the start

    @property
    def command_bytes(self) -> int:
        """The greatest length of a command's frame on the line."""

    @property
    def echo_bytes(self) -> int:
        """The same of the motor controller's echo, which has the other direction of the line to itself."""

    def encode(self, message: WireMessage) -> bytes:
        """One frame, delimiters included."""

    def feed(self, data: bytes) -> list[WireMessage]:
        """The messages that ``data`` completes; anything damaged is counted and dropped."""

    def reset(self) -> None:
        """Forget a begun frame: the next bytes come from another connection."""


CODECS: Mapping[str, Callable[[Sequence[str]], Codec]] = MappingProxyType(
    {
        CobsCodec.name: lambda axes: CobsCodec(axes=axes),
    }
)


def make_codec(name: str, *, axes: Sequence[str]) -> Codec:
    """The codec ``name`` for these axes, in the plant's order; ``ConfigError`` when there is none of that name."""
    if name not in CODECS:
        raise ConfigError(f"link.codec: {name!r} is not a codec; known: {', '.join(CODECS)}")
    return CODECS[name](axes)
