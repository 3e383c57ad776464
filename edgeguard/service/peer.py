"""Who is at the other end of a Unix socket, as the kernel knows it: the same user, root, or a member of a group."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass

SO_PEERGROUPS = 59  # <asm-generic/socket.h>; Python has no name for it

_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid
_MOST_GROUPS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The credentials at the time of ``connect``."""

    pid: int
    uid: int
    groups: frozenset[int]

    @classmethod
    def of(cls, sock: socket.socket) -> Peer:
        pid, uid, gid = _CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        return cls(pid=pid, uid=uid, groups=frozenset({gid, *_supplementary(sock)}))

    def may_enter(self, *, group: int | None) -> bool:
        """Whether it is root, we ourselves, or in ``group``."""
        return self.uid in (0, os.geteuid()) or (group is not None and group in self.groups)


def _supplementary(sock: socket.socket) -> tuple[int, ...]:
    try:
        packed = sock.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4 * _MOST_GROUPS)
    except OSError:  # an older kernel, or more groups than we look at: the primary group has to do
        return ()
    return struct.unpack(f"{len(packed) // 4}I", packed)
