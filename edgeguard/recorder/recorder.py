"""The guard's end of the black box: hands each step over to the recorder's process or loses it, at once.

It touches no disk and waits for nobody. What became of the steps it hears from the recorder, about once a second.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from edgeguard.guard.interface import Effects, Inputs
from edgeguard.guard.state import GuardState
from edgeguard.recorder.journal import FlightJournal
from edgeguard.recorder.packet import PACKET_LIMIT_BYTES, PacketFlag, Report, decode_report, encode_packet
from edgeguard.recorder.record import FlightHeader, encode_header

PROCESS_MODULE = "edgeguard.recorder.process"

REPORTS_AT_ONCE = 8


class FlightRecorder:
    """``lost`` counts the steps that are in no file; ``report`` is the recorder's last word, if it has had one."""

    def __init__(self, file: Path, *, header: FlightHeader) -> None:
        """Start the recorder's process; call it before asking for real-time priority."""
        self._journal = FlightJournal()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        with theirs:
            argv = [sys.executable, "-m", PROCESS_MODULE, str(theirs.fileno()), str(file)]
            self._process = subprocess.Popen(
                argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )  # Ctrl-C is ours: it ends with its socket
        self._not_taken = 0
        self._lost_before = 0  # by recorders that have been replaced
        self._gone = not self._hand_over(encode_header(header))
        self.report: Report | None = None

    @property
    def lost(self) -> int:
        return self._not_taken + self._lost_before + (0 if self.report is None else self.report.lost)

    @property
    def standing(self) -> str:
        """For people: what becomes of the record."""
        if self._gone:
            return "the recorder has ended; nothing is recorded until the next start"
        if self.report is None:
            return "starting"
        return self.report.problem or f"step {self.report.synced} is on the disk"

    def note(self, before: GuardState, now_ns: int, inputs: Inputs, effects: Effects) -> None:
        """One step of the core."""
        document, begins_block = self._journal.note(before, now_ns, inputs, effects)
        flags = PacketFlag(0)
        if begins_block:
            flags |= PacketFlag.BEGINS_BLOCK
            self.hear()
        if effects.events:
            flags |= PacketFlag.TRANSITION
        if document is None or not self._hand_over(encode_packet(flags, self._journal.number, document)):
            self._journal.lost()
            self._not_taken += 1

    def hear(self) -> None:
        """Take what the recorder has reported; called by ``note`` once per block."""
        for _ in range(REPORTS_AT_ONCE):
            try:
                packet = self._socket.recv(PACKET_LIMIT_BYTES)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._gone = True
                return
            report = decode_report(packet)
            if self.report is not None and report.pid != self.report.pid:
                self._lost_before += self.report.lost
            self.report = report

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
