"""What the guard and its recorder say to each other over a SOCK_SEQPACKET socket.

The first packet is the flight's header. Then each step is one packet: ``u8 flags | u64 number | document``,
little-endian. The recorder answers now and then with a ``Report``; nobody waits for it.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntFlag

from edgeguard.plain import from_plain, to_plain

PACKET_LIMIT_BYTES = 192 << 10
"""Below Linux's default socket buffer (212,992 bytes)."""

_HEAD = struct.Struct("<BQ")


class PacketFlag(IntFlag):
    BEGINS_BLOCK = 1
    TRANSITION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Of one recorder's process. ``synced`` is the number of the last step that is on the disk; counts are of steps.

    ``problem`` is why steps are being lost, the file grows beyond its limit, or no metrics are written: for people.
    """

    pid: int
    synced: int = 0
    written: int = 0
    lost: int = 0
    problem: str | None = None


def encode_packet(flags: PacketFlag, number: int, document: bytes) -> bytes:
    return _HEAD.pack(flags, number) + document


def decode_packet(packet: bytes) -> tuple[PacketFlag, int, bytes]:
    """Flags, number and document; ``ValueError`` for what is no packet."""
    if len(packet) < _HEAD.size:
        raise ValueError(f"a packet of {len(packet)} bytes")
    flags, number = _HEAD.unpack_from(packet)
    return PacketFlag(flags), number, packet[_HEAD.size :]


def encode_report(report: Report) -> bytes:
    return json.dumps(to_plain(report)).encode()


def decode_report(packet: bytes) -> Report:
    """``ValueError`` for what is none."""
    return from_plain(Report, json.loads(packet))
