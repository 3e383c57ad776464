"""Bounded messages between edgeguard's processes: JSON over SOCK_SEQPACKET, never blocking, never pickle.

A message is one JSON object with a ``type``; it arrives whole or not at all. Numbers with a fraction are read as
``Decimal``: a value of up to 15 digits, such as 0.3, survives the trip exactly. A full peer loses the newest message
and ``send`` says so; whoever sends decides whether that matters. A dead peer makes ``closed`` true, it is no error.
Knows nothing of what the messages mean.
"""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from edgeguard.errors import EdgeguardError

MESSAGE_LIMIT_BYTES = 128 * 1024
"""Below Linux's default socket buffer (212,992 bytes): a packet above the buffer cannot be sent at all."""

PEER_LIMIT_BYTES = 16 * 1024
"""What the guard takes at most from a caller, a client or its worker. Several of them fit into a message of its own."""

DRAIN_LIMIT = 32
"""How many messages one call takes at most, so that a talkative peer cannot hold the tick."""

Message = dict[str, Any]


class MessageTooLargeError(EdgeguardError):
    """A message of more than ``MESSAGE_LIMIT_BYTES``; a defect of the sender or an attack."""


def encode(message: Mapping[str, object]) -> bytes:
    """One message as bytes; ``Decimal`` becomes a JSON number."""
    packet = _ENCODER.encode(message).encode()
    if len(packet) > MESSAGE_LIMIT_BYTES:
        raise MessageTooLargeError(f"a message of {len(packet)} bytes; at most {MESSAGE_LIMIT_BYTES} are sent")
    return packet


def decode(packet: bytes) -> Message | None:
    """The message in ``packet``, or ``None`` when it is not one: garbage is dropped, not fatal."""
    try:
        text = packet.decode().strip()
        message, end = _DECODER.raw_decode(text)
    except (ValueError, ArithmeticError, RecursionError):  # ArithmeticError: an exponent beyond every Decimal
        return None
    whole = end == len(text) and isinstance(message, dict) and isinstance(message.get("type"), str)
    return message if whole else None


def _number(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"a message cannot carry {type(value).__name__}")


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_number)
_DECODER = json.JSONDecoder(parse_float=Decimal)


def inherited_socket(fd: int) -> socket.socket:
    """What a parent process left open at ``fd``, at the lowest free number and nobody else's to inherit.

    The parent may have had more open than ``select.select`` knows; and that waits to the microsecond, which ``poll``
    does not.
    """
    lowest = os.dup(fd)
    os.close(fd)
    return socket.socket(fileno=lowest)


class Channel:
    """One end of a non-blocking message socket. ``closed`` turns true once the peer is gone.

    ``garbage`` counts the packets that were no message; one of more than ``limit_bytes`` is cut off and so is none.
    ``taken_bytes`` is what all that has arrived amounts to: to read 16 kB takes 2 ms when they are numbers.
    """

    def __init__(self, sock: socket.socket, *, limit_bytes: int = MESSAGE_LIMIT_BYTES) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._limit_bytes = limit_bytes
        self._packet = memoryview(bytearray(limit_bytes))  # once, not 128 kB anew for each message
        self.closed = False
        self.garbage = 0
        self.taken_bytes = 0

    @classmethod
    def pair(cls, *, limit_bytes: int = MESSAGE_LIMIT_BYTES) -> tuple[Channel, socket.socket]:
        """Our end, and the peer's socket to hand to another process (its ``fileno`` through ``pass_fds``)."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours, limit_bytes=limit_bytes), theirs

    @classmethod
    def from_fd(cls, fd: int, *, limit_bytes: int = MESSAGE_LIMIT_BYTES) -> Channel:
        """The end that a parent process left open at ``fd``."""
        return cls(inherited_socket(fd), limit_bytes=limit_bytes)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Mapping[str, object], *, fds: Sequence[int] = ()) -> bool:
        """Send now or not at all; ``False`` when the peer is full or gone."""
        return self.send_packet(encode(message), fds=fds)

    def send_packet(self, packet: bytes, *, fds: Sequence[int] = ()) -> bool:
        """Like ``send``, for a message that is encoded once and sent to several."""
        try:
            if fds:
                socket.send_fds(self._socket, [packet], list(fds))
            else:
                self._socket.send(packet)
        except (BrokenPipeError, ConnectionResetError):
            self.closed = True
            return False
        except OSError:  # full, beyond the socket's buffer, or the kernel is short of memory: the peer is still there
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """Until there is something to receive, or the peer has gone; false when nothing came for so long."""
        poll = select.poll()  # select.select knows no descriptor above 1,023, and a caller may have many open
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def receive(self, *, most: int = DRAIN_LIMIT) -> list[Message]:
        """What has arrived, oldest first: at most ``most`` messages, and none after ``limit_bytes``."""
        return [message for message, _ in self._drain(max_fds=0, most=most)]

    def receive_with_fds(self) -> list[tuple[Message, list[int]]]:
        """Like ``receive``, with the descriptors that came along (at most four a message)."""
        return self._drain(max_fds=4, most=DRAIN_LIMIT)

    def _drain(self, *, max_fds: int, most: int) -> list[tuple[Message, list[int]]]:
        arrived: list[tuple[Message, list[int]]] = []
        enough_bytes = self.taken_bytes + self._limit_bytes
        for _ in range(most):
            if self.taken_bytes >= enough_bytes:
                break
            fds: list[int] = []
            try:
                if max_fds:
                    packet, fds, _, _ = socket.recv_fds(self._socket, self._limit_bytes, max_fds)
                else:
                    packet = bytes(self._packet[: self._socket.recv_into(self._packet)])
            except (BlockingIOError, InterruptedError):
                break
            except ConnectionResetError:  # said once, when the peer left words of ours unread; its last ones come now
                continue
            except OSError:
                self.closed = True
                break
            if not packet:  # SEQPACKET: zero bytes mean that the peer has closed; we never send empty packets
                self.closed = True
                break
            self.taken_bytes += len(packet)
            message = decode(packet)
            if message is None:
                self.garbage += 1
            else:
                arrived.append((message, list(fds)))
        return arrived

    def close(self) -> None:
        self._socket.close()
        self.closed = True
