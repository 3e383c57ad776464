"""The least that a hand-over can cost here: two processes wake each other and do nothing else.

A packet as long as a request goes to a process that answers with one as long as an answer, over the same kind of socket
as a worker's and after the same rest. Before each rest both read as much memory as a pass reads weights, because a pass
leaves no line of anybody's code in the caches. What a real hand-over takes beyond this is our own code.

``python -m edgeguard.bench.speed.wake_ups FD BYTES`` is the other process. Milliseconds. Raises ``WorkerError`` when it
does not answer.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass

from edgeguard.bench.percentile import percentile
from edgeguard.clock import NS_PER_MS, Clock
from edgeguard.errors import WorkerError
from edgeguard.model.progress import Progress, silent

PACKET = bytes(300)
"""A request of the demo is 300 bytes of JSON, and so is an answer."""

WARM_UP = 5
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WakeUps:
    """There and back again, so many ``rounds``."""

    rounds: int
    p50_ms: float
    p99_ms: float


def measure_wake_ups(
    *, rounds: int, rest_ns: int, read_bytes: int, clock: Clock, progress: Progress = silent
) -> WakeUps:
    """``rest_ns`` between two rounds, and ``read_bytes`` read by each side before it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    argv = [sys.executable, "-m", __name__, str(theirs.fileno()), str(read_bytes)]
    with subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL), ours:  # it ends when ours closes
        theirs.close()
        ours.settimeout(PATIENCE_S)  # for a process that is gone; beyond that a wait is the same
        memory, times_ns = bytearray(read_bytes), list[float]()
        for done in range(WARM_UP + rounds):
            progress("waking up", done, WARM_UP + rounds)
            memory.count(1)
            clock.sleep_until_ns(clock.now_ns() + rest_ns)
            began_ns = clock.now_ns()
            times_ns.append(_there_and_back(ours, clock) - began_ns)
        progress("waking up", WARM_UP + rounds, WARM_UP + rounds)
    times_ms = [one / NS_PER_MS for one in times_ns[WARM_UP:]]
    return WakeUps(rounds=rounds, p50_ms=percentile(times_ms, 0.5), p99_ms=percentile(times_ms, 0.99))


def _there_and_back(ours: socket.socket, clock: Clock) -> int:
    try:
        ours.send(PACKET)
        answer = ours.recv(len(PACKET))
    except OSError as error:
        raise WorkerError(f"the process that is to wake up does not answer: {error}") from error
    if not answer:
        raise WorkerError("the process that is to wake up has ended")
    return clock.now_ns()


def main() -> None:
    """Answer until the other end closes."""
    peer, memory = socket.socket(fileno=int(sys.argv[1])), bytearray(int(sys.argv[2]))
    peer.settimeout(None)
    while peer.recv(len(PACKET)):
        peer.send(PACKET)
        memory.count(1)


if __name__ == "__main__":
    main()
