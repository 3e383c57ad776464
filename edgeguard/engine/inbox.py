"""What the worker has been told: the newest request, and orders; also while a pass runs.

The newest request wins: it replaces one that waits and cancels one that runs. A closed channel ends the process at
once, in whatever pass it is: nobody is left to answer.

One thread at a time listens, and only that one touches what was told: whoever asks for work, as long as there is none,
so that a request reaches it without a second thread to wake; and a thread of our own while work is done. What can be
done before a request comes is done before: behind a pass all code is cold, and a request waits for it.
"""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable

from edgeguard.channel import Channel, Message


class Inbox:
    """``begin`` is called before a request is waited for; ``cancel``, from another thread, when nobody waits for it."""

    def __init__(self, *, channel: Channel, begin: Callable[[], None], cancel: Callable[[], None]) -> None:
        self._channel = channel
        self._begin = begin
        self._cancel = cancel
        self._orders: deque[Message] = deque()
        self._request: Message | None = None
        self._running: object = None
        self._bell, self._cord = os.pipe()  # pulled when the work is done
        self._working, self._stood_down = threading.Lock(), threading.Lock()  # released once for each acquire
        self._working.acquire()
        self._stood_down.acquire()
        self._told, self._told_or_done = select.poll(), select.poll()
        self._told.register(channel, select.POLLIN)
        self._told_or_done.register(channel, select.POLLIN)
        self._told_or_done.register(self._bell, select.POLLIN)
        self._at_work = False
        threading.Thread(target=self._listen_while_working, name="inbox", daemon=True).start()

    def take(self) -> Message:
        """Wait for the next order or request, orders first. What was taken before is done."""
        if self._at_work:
            os.write(self._cord, b"!")
            self._stood_down.acquire()
        self._running, self._at_work = None, True
        self._begin()
        while not self._orders and self._request is None:
            self._told.poll()
            self._read()
        if self._orders:
            message = self._orders.popleft()
        else:
            assert self._request is not None
            message, self._request = self._request, None
            self._running = message.get("request_id")
        self._working.release()
        return message

    def _listen_while_working(self) -> None:
        while True:
            self._working.acquire()
            while True:
                if any(fd == self._bell for fd, _ in self._told_or_done.poll()):
                    os.read(self._bell, 1)
                    break
                self._read()
            self._stood_down.release()

    def _read(self) -> None:
        for message in self._channel.receive():
            self._note(message)
        if self._channel.closed:
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
