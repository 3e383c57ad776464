"""The least that a hand-over can cost: two processes that wake each other."""

from __future__ import annotations

import socket

import pytest

from edgeguard.bench.speed.wake_ups import _there_and_back, measure_wake_ups
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.errors import WorkerError


def test_two_processes_wake_each_other_as_often_as_asked() -> None:
    told = list[tuple[int, int]]()
    found = measure_wake_ups(
        rounds=7,
        rest_ns=NS_PER_MS,
        read_bytes=1 << 20,
        clock=SystemClock(),
        progress=lambda _, done, total: told.append((done, total)),
    )
    assert found.rounds == 7
    assert 0 < found.p50_ms <= found.p99_ms
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]


def test_a_process_that_is_gone_is_no_round() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        theirs.close()
        with pytest.raises(WorkerError, match="does not answer"):
            _there_and_back(ours, SystemClock())
