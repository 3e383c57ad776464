"""What a service tells systemd: the sd_notify(3) protocol, one datagram per message, never blocking.

Without ``NOTIFY_SOCKET`` nothing is sent. What the manager's full socket does not take is said again with the next
message, which follows within a heartbeat.
"""

from __future__ import annotations

import contextlib
import os
import socket

from edgeguard.clock import NS_PER_US

LIMIT_BYTES = 4095
"""systemd ignores a longer message (NOTIFY_BUFFER_MAX), and with it the watchdog's word in it."""


class Notifier:
    """One notify socket. ``watchdog_ns`` is the interval within which the manager wants to hear of us, if it does."""

    def __init__(self, address: str | None, *, watchdog_ns: int | None = None) -> None:
        self.watchdog_ns = watchdog_ns
        self._unsaid: dict[str, str] = {}
        self._socket: socket.socket | None = None
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._socket.setblocking(False)
            self._address = f"\0{address[1:]}" if address.startswith("@") else address

    @classmethod
    def from_environment(cls) -> Notifier:
        """As sd_notify(3) and sd_watchdog_enabled(3) say."""
        interval_us = os.environ.get("WATCHDOG_USEC", "")
        ours = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watchdog_ns = int(interval_us) * NS_PER_US if interval_us.isdigit() and ours else None
        return cls(os.environ.get("NOTIFY_SOCKET"), watchdog_ns=watchdog_ns)

    def say(self, *lines: str) -> None:
        """Assignments such as ``READY=1``, together in one message; of a long one only the beginning is said."""
        if self._socket is not None and lines:
            news = dict(line.split("=", 1) for line in lines)
            self._unsaid = {**news, **self._unsaid, **news}  # the news first, in case that not all of it can be said
            message = "\n".join(map("=".join, self._unsaid.items()))
            with contextlib.suppress(OSError):  # full, or there is no manager any more
                self._socket.sendto(message.encode(errors="replace")[:LIMIT_BYTES], self._address)
                self._unsaid = {}

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
