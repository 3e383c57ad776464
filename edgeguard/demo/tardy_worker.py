"""The engine's worker, behind a channel that can be told to be late: ``python -m edgeguard.demo.tardy_worker …``.

SIGUSR1 holds the next answer back until its deadline has passed, and then sends it all the same, as an overloaded
machine might. Everything else is ``edgeguard.engine.worker``, with its arguments. For the demo only.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Mapping, Sequence

from edgeguard.channel import DRAIN_LIMIT, Channel, Message
from edgeguard.clock import NS_PER_MS, Clock, SystemClock
from edgeguard.engine import worker

LATE_NS = 30 * NS_PER_MS
"""After the time by which the guard wanted the answer: late beyond doubt, and over before the next one is due."""


class TardyChannel(Channel):
    """A channel like any other, until it is ``tardy``: then one answer goes out after its time."""

    def __init__(self, sock: socket.socket, *, clock: Clock | None = None) -> None:
        super().__init__(sock)
        self._clock = clock or SystemClock()
        self._wanted_by_ns: dict[object, int] = {}
        self.tardy = False

    def receive(self, *, most: int = DRAIN_LIMIT) -> list[Message]:
        messages = super().receive(most=most)
        for message in messages:
            if message["type"] == "request":
                self._wanted_by_ns = {message.get("request_id"): int(message.get("answer_by_ns", 0))}
        return messages

    def send(self, message: Mapping[str, object], *, fds: Sequence[int] = ()) -> bool:
        if self.tardy and message["type"] == "answer":
            self.tardy = False
            self._clock.sleep_until_ns(self._wanted_by_ns.get(message["request_id"], 0) + LATE_NS)
        return super().send(message, fds=fds)


def open_channel(fd: int) -> TardyChannel:
    """The channel at ``fd``, which SIGUSR1 makes tardy."""
    channel = TardyChannel(socket.socket(fileno=fd))

    def be_tardy(_signal: int, _frame: object) -> None:
        channel.tardy = True

    signal.signal(signal.SIGUSR1, be_tardy)
    return channel


if __name__ == "__main__":
    worker.main(open_channel)
