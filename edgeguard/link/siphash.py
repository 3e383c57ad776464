"""SipHash-2-4: 8 bytes that only the holder of a 16-byte key can make of a message. Pure, about 20 µs for a frame.

Chosen over a truncated HMAC-SHA256 for the other end of the wire: it was made for short messages, and an 8-bit motor
controller takes about a millisecond for a frame where SHA-256 takes eight (reckoned). Source: Aumasson and Bernstein,
"SipHash: a fast short-input PRF" (2012), whose test vector is in the tests.
"""

from __future__ import annotations

import struct

KEY_BYTES = 16
TAG_BYTES = 8

_MASK = (1 << 64) - 1
_START = (
    0x736F6D6570736575,
    0x646F72616E646F6D,
    0x6C7967656E657261,
    0x7465646279746573,
)


def siphash24(key: bytes, message: bytes) -> bytes:
    """The tag of ``message``, little-endian as on the wire. ``key`` has ``KEY_BYTES`` bytes."""
    k0, k1 = struct.unpack("<QQ", key)
    a, b, c, d = (start ^ half for start, half in zip(_START, (k0, k1, k0, k1), strict=True))
    whole = len(message) // 8 * 8
    last = message[whole:].ljust(7, b"\0") + bytes([len(message) % 256])
    for (word,) in struct.iter_unpack("<Q", message[:whole] + last):
        a, b, c, d = _rounds(2, a, b, c, d ^ word)
        a ^= word
    a, b, c, d = _rounds(4, a, b, c ^ 0xFF, d)
    return struct.pack("<Q", a ^ b ^ c ^ d)


def _rounds(count: int, a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    for _ in range(count):
        a = (a + b) & _MASK
        c = (c + d) & _MASK
        b = ((b << 13 | b >> 51) & _MASK) ^ a
        d = ((d << 16 | d >> 48) & _MASK) ^ c
        a = (a << 32 | a >> 32) & _MASK
        a = (a + d) & _MASK
        c = (c + b) & _MASK
        d = ((d << 21 | d >> 43) & _MASK) ^ a
        b = ((b << 17 | b >> 47) & _MASK) ^ c
        c = (c << 32 | c >> 32) & _MASK
    return a, b, c, d
