"""Who listens changes with every request: nothing that was told is lost, and what runs hears of it."""

from __future__ import annotations

import random
import threading
import time

import pytest

from edgeguard.channel import Channel, Message
from edgeguard.engine.inbox import Inbox

PATIENCE_S = 60.0


class Rig:
    """An inbox, and a thread that takes and works on what it gets."""

    def __init__(self, *, work_s: float, seed: int = 0) -> None:
        self.peer, theirs = Channel.pair()
        self._mine = Channel(theirs)
        self.cancelled = threading.Event()
        self.begun: list[Message] = []
        self.taken: list[Message] = []
        self._work_s, self._draw = work_s, random.Random(seed)
        self._inbox = Inbox(channel=self._mine, begin=self.cancelled.clear, cancel=self.cancelled.set)
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            message = self._inbox.take()
            self.begun.append(message)
            if message["type"] == "request":
                self.cancelled.wait(self._draw.random() * self._work_s)
            self.taken.append(message)

    def wait_for(self, message: Message, *, among: list[Message] | None = None) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while message not in (self.taken if among is None else among):
            assert time.monotonic() < until_s, f"{message} was never taken"
            time.sleep(0.001)

    def send(self, message: Message) -> None:
        while not self.peer.send(message):
            time.sleep(0.001)


def request(number: int) -> Message:
    return {"type": "request", "request_id": number}


@pytest.mark.parametrize("work_s", [0.0, 0.002])
def test_no_order_is_lost_and_the_newest_request_is_always_taken(work_s: float) -> None:
    rig, draw, ordered = Rig(work_s=work_s), random.Random(1), list[int]()
    for number in range(300):
        rig.send(request(number))
        if draw.random() < 0.3:
            rig.send({"type": "cancel", "request_id": number})
        if draw.random() < 0.3:
            rig.send({"type": "sweep", "number": number})
            ordered.append(number)
        if draw.random() < 0.2:
            time.sleep(draw.random() * 0.004)
        if draw.random() < 0.1:
            rig.send(request(1000 + number))
            rig.wait_for(request(1000 + number))
    rig.send(request(9999))
    rig.wait_for(request(9999))
    assert [one["number"] for one in rig.taken if one["type"] == "sweep"] == ordered
    numbers = [one["request_id"] for one in rig.taken if one["type"] == "request" and one["request_id"] < 1000]
    assert numbers == sorted(numbers), "an older one is never taken behind a newer one"


def test_what_runs_is_told_of_a_newer_one_and_of_its_end() -> None:
    rig = Rig(work_s=1_000 * PATIENCE_S)
    for number in range(50):
        rig.send(request(number))
    rig.send(request(50))
    rig.wait_for(request(50), among=rig.begun)
    rig.send({"type": "cancel", "request_id": 50})
    rig.wait_for(request(50))
