"""One message of whoever it is ends nobody: odd numbers, long texts, a full kernel, a worker that hangs up."""

from __future__ import annotations

import os
import socket

import pytest

from edgeguard.channel import PEER_LIMIT_BYTES, Channel, decode, encode
from edgeguard.clock import NS_PER_MS, FakeClock, boottime_offset_ns
from edgeguard.service.notify import LIMIT_BYTES, Notifier

ODD_NUMBERS = ["1E+9999999999999999999", "-1e9999999999999999999"]


@pytest.mark.parametrize("number", ODD_NUMBERS, ids=lambda number: number[:12])
def test_a_number_that_nobody_can_hold_is_garbage(number):
    assert decode(b'{"type": "observation", "age_ms": %s}' % number.encode()) is None


def test_a_packet_beyond_the_sockets_buffer_is_lost_and_the_peer_is_still_there():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    with theirs:
        channel = Channel(ours)
        assert not channel.send({"type": "record", "padding": "x" * 100_000})
        assert not channel.closed
        assert channel.send({"type": "record"})
        channel.close()


def test_of_long_messages_a_few_are_read_at_once():
    ours, sock = Channel.pair(limit_bytes=PEER_LIMIT_BYTES)
    theirs = Channel(sock)
    long = {"type": "answer", "padding": "x" * (PEER_LIMIT_BYTES - 100)}
    assert sum(theirs.send(long) for _ in range(4)) == 4
    assert [len(ours.receive()) for _ in range(3)] == [2, 2, 0]
    for channel in (ours, theirs):
        channel.close()


def test_waiting_knows_no_greatest_descriptor():
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1_100:
        pytest.skip(f"at most {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_100, hard))
    low, peer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        high = os.dup2(low.fileno(), 1_050)
        channel = Channel(socket.socket(fileno=high))
        assert not channel.wait(0.0)
        peer.send(encode({"type": "status"}))
        assert channel.wait(1.0)
        assert channel.receive() == [{"type": "status"}]
        channel.close()
    finally:
        low.close()
        peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# The manager.


@pytest.mark.parametrize("text", ["x" * 10_000, "a path \udcff that is no text"], ids=["long", "no text"])
def test_the_watchdogs_word_arrives_whatever_the_status_says(tmp_path, text):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        notifier = Notifier(str(tmp_path / "notify"))
        notifier.say("WATCHDOG=1", f"STATUS={text}")
        heard = manager.recv(1 << 17)
        notifier.close()
    assert heard.startswith(b"WATCHDOG=1\nSTATUS=")
    assert len(heard) <= LIMIT_BYTES


# The clocks.


class Preempted(FakeClock):
    """Its process is set aside for ``away_ns`` whenever boot time has been read."""

    away_ns = 0

    def boottime_ns(self) -> int:
        boottime_ns = super().boottime_ns()
        self.advance_ns(self.away_ns)
        return boottime_ns


def test_a_process_that_is_set_aside_between_two_readings_of_the_clocks_was_not_suspended():
    clock = Preempted()
    clock.away_ns = 50 * NS_PER_MS
    assert boottime_offset_ns(clock, known_ns=0) == 0
    clock.away_ns = 0
    assert boottime_offset_ns(clock, known_ns=0) == 0


def test_a_machine_that_slept_was_suspended():
    clock = Preempted()
    clock.away_ns = 5 * NS_PER_MS
    clock.suspend_ns(3_000 * NS_PER_MS)
    offset_ns = boottime_offset_ns(clock, known_ns=0)
    assert 2_995 * NS_PER_MS <= offset_ns <= 3_000 * NS_PER_MS
