"""One session for days: its numbers wrap, and every echo of it is still known."""

from __future__ import annotations

from edgeguard.link.session import Session
from edgeguard.types import Action, Echo, MotorFlag, SetPoint
from edgeguard.types.wire import SEQUENCE_MODULUS, Command, Welcome

STOP = SetPoint(axes={"linear": 0.0}, action=Action.STOP, life_ms=80)
TICK_MS = 20


def echo(command: Command, *, controller_ms: int) -> Echo:
    return Echo(
        session=command.session,
        sequence=command.sequence,
        flags=MotorFlag(0),
        life_ms=80,
        axes={"linear": 0.0},
        controller_ms=controller_ms % (1 << 32),
    )


def test_every_echo_is_taken_once_while_sequence_and_clock_wrap():
    session = Session(Welcome(nonce=1, session=7, axis_count=1, link_timeout_ms=80), shared=True)
    began_ms = (1 << 32) - 1_000 * TICK_MS
    for number in range(SEQUENCE_MODULUS + 2_000):
        answer = echo(session.command(STOP, now_ns=number), controller_ms=began_ms + number * TICK_MS)
        assert session.take(answer, now_ns=number)
        assert session.unanswered_ns(number + 1) == 0
        assert not session.take(answer, now_ns=number)  # played again
