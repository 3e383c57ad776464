"""What the worker has been told, kept by a thread that listens while a pass runs: the newest request, and orders.

The newest request wins: it replaces one that waits and cancels one that runs. A closed channel ends the process at
once, in whatever pass it is: nobody is left to answer.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

from edgeguard.channel import Channel, Message


class Inbox:
    """``begin`` is called, under the lock, when a request is taken; ``cancel`` when nobody waits for it any more."""

    def __init__(self, *, channel: Channel, begin: Callable[[], None], cancel: Callable[[], None]) -> None:
        self._channel = channel
        self._begin = begin
        self._cancel = cancel
        self._changed = threading.Condition()
        self._orders: deque[Message] = deque()
        self._request: Message | None = None
        self._running: object = None
        threading.Thread(target=self._listen, name="inbox", daemon=True).start()

    def take(self) -> Message:
        """Wait for the next order or request, orders first. What was taken before is done."""
        with self._changed:
            self._running = None
            self._changed.wait_for(lambda: self._orders or self._request is not None)
            if self._orders:
                return self._orders.popleft()
            message, self._request = self._request, None
            assert message is not None
            self._running = message.get("request_id")
            self._begin()
            return message

    def _listen(self) -> None:
        while not self._channel.closed:
            select.select([self._channel], [], [])
            for message in self._channel.receive():
                with self._changed:
                    self._note(message)
                    self._changed.notify()
        os._exit(0)

    def _note(self, message: Message) -> None:
        if message["type"] == "request":
            self._request = message
            self._cancel_running()
        elif message["type"] == "cancel":
            wanted = message.get("request_id")
            if self._request is not None and self._request.get("request_id") == wanted:
                self._request = None
            elif self._running == wanted:
                self._cancel_running()
        else:
            self._orders.append(message)

    def _cancel_running(self) -> None:
        if self._running is not None:
            self._cancel()
