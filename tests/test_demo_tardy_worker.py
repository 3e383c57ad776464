"""The channel that can be told to be late."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator

import pytest

from edgeguard.channel import Channel
from edgeguard.clock import NS_PER_MS, NS_PER_S, FakeClock
from edgeguard.demo.tardy_worker import LATE_NS, TardyChannel, open_channel

REQUEST = {"type": "request", "request_id": 7, "answer_by_ns": 2 * NS_PER_S}
ANSWER = {"type": "answer", "request_id": 7}


@pytest.fixture
def pair() -> Iterator[tuple[Channel, TardyChannel, FakeClock]]:
    guard, theirs = Channel.pair()
    clock = FakeClock()
    worker = TardyChannel(theirs, clock=clock)
    yield guard, worker, clock
    guard.close()
    worker.close()


def test_an_answer_goes_out_at_once_unless_told_otherwise(pair: tuple[Channel, TardyChannel, FakeClock]) -> None:
    guard, worker, clock = pair
    guard.send(REQUEST)
    worker.receive()
    assert worker.send(ANSWER)
    assert clock.now_ns() == NS_PER_S
    assert guard.receive() == [ANSWER]


def test_one_answer_is_held_back_until_nobody_can_want_it(pair: tuple[Channel, TardyChannel, FakeClock]) -> None:
    guard, worker, clock = pair
    guard.send(REQUEST)
    worker.receive()
    worker.tardy = True
    worker.send({"type": "warming"})
    assert worker.send(ANSWER)
    assert clock.now_ns() == 2 * NS_PER_S + LATE_NS
    assert worker.send(ANSWER)
    assert clock.now_ns() == 2 * NS_PER_S + LATE_NS, "only one"
    assert [message["type"] for message in guard.receive()] == ["warming", "answer", "answer"]


def test_a_late_answer_is_out_of_the_way_before_the_next_one_is_due() -> None:
    assert LATE_NS < 50 * NS_PER_MS


def test_a_signal_is_the_order() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = open_channel(theirs.detach())
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert channel.tardy
    finally:
        signal.signal(signal.SIGUSR1, before)
        channel.close()
        ours.close()
