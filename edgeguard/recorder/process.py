"""The recorder's process, of ordinary priority: writes the flight log and the metrics, so that the guard does not.

``python -m edgeguard.recorder.process FD FILE`` takes packets from the socket ``FD`` (``edgeguard.recorder.packet``).
It syncs every second and at every transition, so that a power cut costs a second at most, and reports what is on the
disk. Files, their number and size, and the metrics are in the header's configuration. It ends when the guard's end
closes. It may be late: nobody waits for it. Killed, it is forked anew, and goes on with the next block.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
from pathlib import Path

from edgeguard.channel import inherited_socket
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.config.sections import Metrics, Recording
from edgeguard.recorder.log import FlightWriter
from edgeguard.recorder.metrics_output import MetricsOutput
from edgeguard.recorder.packet import PACKET_LIMIT_BYTES, PacketFlag, Report, decode_packet, encode_report
from edgeguard.recorder.record import FlightHeader, decode_header
from edgeguard.recorder.rotation import rotate

SYNC_EVERY_NS = NS_PER_S

GATHER_NS = 40 * NS_PER_MS
"""Two ticks: a record of a few steps is a fifth smaller than as many of one, and 24 h then fit in 500 MB."""

REPLACE_AFTER_NS = 100 * NS_PER_MS


class Recorder:
    """Packets in, files of bounded size out."""

    def __init__(self, sock: socket.socket, file: Path, *, header: FlightHeader, recording: Recording) -> None:
        self._socket = sock
        self._file = file
        self._header = header
        self._recording = recording
        self._writer = FlightWriter(file, header=header)
        self._metrics: MetricsOutput | None = None
        self._clock = SystemClock()
        self._synced_ns = self._clock.now_ns()
        self._gathered: list[bytes] = []
        self._begins_block = False
        self._last_number = 0  # of the steps that were taken, that were written, that are on the disk
        self._written_number = 0
        self._synced_number = 0
        self._written = self._lost = 0  # by the writers of files that have been left
        self._grows: str | None = None  # why the file could not be put aside

    def publish(self, metrics: Metrics) -> None:
        """Keep metrics too; without a call there are none."""
        self._metrics = MetricsOutput(metrics, header=self._header, clock=self._clock)

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
            try:
                packet = self._socket.recv(PACKET_LIMIT_BYTES)
            except ConnectionResetError:  # said once, when the guard has left a report unread; its last steps come now
                continue
            if not packet:
                return True
            self._take(*decode_packet(packet))
        return False

    def _take(self, flags: PacketFlag, number: int, document: bytes) -> None:
        if PacketFlag.BEGINS_BLOCK in flags:
            self._write()
            self._rotate()
            self._begins_block = True
        self._gathered.append(document)
        self._last_number = number
        if self._metrics is not None:
            self._metrics.note(document)
        if PacketFlag.TRANSITION in flags:
            self._write()
            self._sync()

    def _write(self) -> None:
        if self._gathered:
            if self._writer.append(*self._gathered, begins_block=self._begins_block):
                self._written_number = self._last_number
            self._gathered.clear()
            self._begins_block = False

    def _sync(self) -> None:
        if self._writer.sync():
            self._synced_number = self._written_number
        self._synced_ns = self._clock.now_ns()
        written, lost = self._written + self._writer.written, self._lost + self._writer.lost
        problem = self._writer.problem or self._grows
        if self._metrics is not None:
            self._metrics.publish(steps_written=written, steps_lost=lost)
            problem = problem or self._metrics.problem
        report = Report(pid=os.getpid(), synced=self._synced_number, written=written, lost=lost, problem=problem)
        with contextlib.suppress(OSError):  # full or gone: the next one says the same
            self._socket.send(encode_report(report), socket.MSG_DONTWAIT)

    def _rotate(self) -> None:
        """Also behind somebody else who has moved or removed the file, or it would grow where nobody finds it."""
        self._grows = rotate(self._file, limit_bytes=self._recording.file_bytes, files=self._recording.files)
        if self._writer.astray:
            self._written += self._writer.written
            self._lost += self._writer.lost
            self._writer.close()
            self._writer = FlightWriter(self._file, header=self._header)


def main(argv: list[str]) -> None:
    sock = inherited_socket(int(argv[0]))
    content = sock.recv(PACKET_LIMIT_BYTES)
    if not content:
        return
    header, clock = decode_header(content), SystemClock()
    config = header.config()
    while (child := os.fork()) != 0:
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            return
        clock.sleep_until_ns(clock.now_ns() + REPLACE_AFTER_NS)
    recorder = Recorder(sock, Path(argv[1]), header=header, recording=config.recording)
    if config.metrics.wanted:
        recorder.publish(config.metrics)
    recorder.run()


if __name__ == "__main__":
    main(sys.argv[1:])
