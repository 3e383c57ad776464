"""The recorder: a process of ordinary priority that writes the flight log, so that the guard touches no disk.

``python -m edgeguard.recorder.recorder FD FILE`` reads packets from a SOCK_SEQPACKET socket: the header, and then each
time one byte of ``PacketFlag`` and one encoded step. It syncs every second and at every transition: a power cut costs
a second at most. A file of ``FILE_LIMIT_BYTES`` is kept as ``….1`` and a new one begun, so that at most two lie there.
It ends when the guard's end closes. It may be late or dead: nobody waits for it.
"""

from __future__ import annotations

import select
import signal
import socket
import subprocess
import sys
from enum import IntFlag
from pathlib import Path

from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.guard.interface import Effects, Inputs
from edgeguard.guard.state import GuardState
from edgeguard.recorder.journal import FlightJournal
from edgeguard.recorder.log import FlightWriter
from edgeguard.recorder.record import FlightHeader, decode_header, encode_header

FILE_LIMIT_BYTES = 64 << 20
PACKET_LIMIT_BYTES = 192 << 10
"""Below Linux's default socket buffer (212,992 bytes)."""

SYNC_EVERY_NS = NS_PER_S

GATHER_NS = 40 * NS_PER_MS
"""Two ticks: a record of a few steps is a fifth smaller than as many of one, and 24 h then fit in 500 MB."""


class PacketFlag(IntFlag):
    BEGINS_BLOCK = 1
    TRANSITION = 2


class FlightRecorder:
    """The guard's end: hands each step over or loses it, at once. ``lost`` counts the steps that were not taken."""

    def __init__(self, file: Path, *, header: FlightHeader) -> None:
        """Start the recorder's process; call it before asking for real-time priority."""
        self._journal = FlightJournal()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        with theirs:
            argv = [sys.executable, "-m", "edgeguard.recorder.recorder", str(theirs.fileno()), str(file)]
            self._process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        self._hand_over(encode_header(header))
        self.lost = 0

    def note(self, before: GuardState, now_ns: int, inputs: Inputs, effects: Effects) -> None:
        """One step of the core."""
        document, begins_block = self._journal.note(before, now_ns, inputs, effects)
        flags = PacketFlag(0)
        if begins_block:
            flags |= PacketFlag.BEGINS_BLOCK
        if effects.events:
            flags |= PacketFlag.TRANSITION
        if document is None or not self._hand_over(bytes([flags]) + document):
            self._journal.lost()
            self.lost += 1

    def close(self) -> None:
        """Let it write what it has, and end."""
        self._socket.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hand_over(self, packet: bytes) -> bool:
        try:
            return len(packet) <= PACKET_LIMIT_BYTES and self._socket.send(packet) == len(packet)
        except OSError:  # full, or gone
            return False


class Recorder:
    """The process' end: packets in, a file of bounded size out."""

    def __init__(self, sock: socket.socket, file: Path, *, header: FlightHeader) -> None:
        self._socket = sock
        self._file = file
        self._header = header
        self._writer = FlightWriter(file, header=header)
        self._clock = SystemClock()
        self._synced_ns = self._clock.now_ns()
        self._gathered: list[bytes] = []
        self._begins_block = False

    def run(self) -> None:
        """Write until the guard's end closes."""
        ended = False
        while not ended:
            ended = self._gather(self._clock.now_ns() + GATHER_NS)
            self._write()
            if self._clock.now_ns() - self._synced_ns >= SYNC_EVERY_NS:
                self._sync()
        self._writer.close()

    def _gather(self, until_ns: int) -> bool:
        """Take what comes until then; true when the guard's end has closed."""
        while (left_ns := until_ns - self._clock.now_ns()) > 0:
            if not select.select([self._socket], [], [], left_ns / NS_PER_S)[0]:
                return False
            packet = self._socket.recv(PACKET_LIMIT_BYTES)
            if not packet:
                return True
            self._take(PacketFlag(packet[0]), packet[1:])
        return False

    def _take(self, flags: PacketFlag, document: bytes) -> None:
        if PacketFlag.BEGINS_BLOCK in flags:
            self._write()
            self._rotate()
            self._begins_block = True
        self._gathered.append(document)
        if PacketFlag.TRANSITION in flags:
            self._write()
            self._sync()

    def _write(self) -> None:
        if self._gathered:
            self._writer.append(*self._gathered, begins_block=self._begins_block)
            self._gathered.clear()
            self._begins_block = False

    def _sync(self) -> None:
        self._writer.sync()
        self._synced_ns = self._clock.now_ns()

    def _rotate(self) -> None:
        try:
            if self._file.stat().st_size < FILE_LIMIT_BYTES:
                return
            self._writer.close()
            self._file.replace(self._file.with_name(f"{self._file.name}.1"))
        except OSError:  # nothing there yet, or a disk that fails: the writer counts what it loses
            return
        self._writer = FlightWriter(self._file, header=self._header)


def main(argv: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the guard's; we end when it does
    sock = socket.socket(fileno=int(argv[0]))
    header = sock.recv(PACKET_LIMIT_BYTES)
    if header:
        Recorder(sock, Path(argv[1]), header=decode_header(header)).run()


if __name__ == "__main__":
    main(sys.argv[1:])
