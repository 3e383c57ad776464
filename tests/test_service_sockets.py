"""What is said on a service's sockets, without a guard behind them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeguard.guard.state import GuardState
from edgeguard.runtime.status import Status
from edgeguard.service.sockets import OBSERVE_SOCKET, Sockets
from edgeguard.types import Grade, Mode

STATE = GuardState.initial(now_ns=1)
STANDING = Status(
    mode=Mode.INHIBITED,
    grade=Grade.COMFORTABLE,
    causes=STATE.causes,
    detail=STATE.detail,
    epoch=1,
    cycles=0,
    guard_pid=1,
    worker_pid=None,
    worker="gone",
    link="up",
    recorder="starting",
    session=None,
    reserve_ns=0,
    wire_ns=0,
    bound_ns=None,
    margin=1.0,
    board="not yet looked at",
    prefix_tokens=None,
)


@pytest.fixture
def sockets(tmp_path: Path) -> Iterator[Sockets]:
    one = Sockets(tmp_path, group=None, operators=None)
    yield one
    one.close()


def test_however_many_ask_for_the_status_it_is_worked_out_once(sockets: Sockets, tmp_path: Path) -> None:
    asked = []

    def status() -> Status:
        asked.append(STANDING)
        return STANDING

    clients = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(3)]
    for client in clients:
        client.connect(str(tmp_path / OBSERVE_SOCKET))
    sockets.hear(1, status)  # lets them in
    for client in clients:
        client.send(b'{"type":"status"}')
    sockets.hear(2, status)
    replies = [json.loads(client.recv(1 << 16)) for client in clients]
    for client in clients:
        client.close()
    assert {reply["status"]["mode"] for reply in replies} == {"inhibited"}
    assert len(asked) == 1
