"""The caller's handle to a guard, without one: what it makes of what has arrived, and when it gives up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from flights import SCENARIOS

from edgeguard import Guard
from edgeguard.channel import Channel
from edgeguard.config import load_config
from edgeguard.errors import GuardGoneError
from edgeguard.plain import to_plain
from edgeguard.runtime.status import Status
from edgeguard.types import Event, Grade, Mode

STATUS = Status(
    mode=Mode.INHIBITED, grade=Grade.NONE, causes=(), detail="", epoch=1, cycles=0, guard_pid=1, worker_pid=None,
    worker="", link="", recorder="", session=None, reserve_ns=0, wire_ns=0, bound_ns=None, margin=1.0, board="",
    prefix_tokens=None,
)  # fmt: skip


@pytest.fixture
def ends() -> Iterator[tuple[Guard, Channel]]:
    """A handle, and the end of the channel that a guard would have."""
    ours, theirs = Channel.pair()
    process = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    with process:
        yield Guard(process=process, channel=ours, config=load_config(SCENARIOS / "robot.toml")), Channel(theirs)
        theirs.close()
        ours.close()


def test_a_caller_that_was_set_aside_finds_what_has_come_meanwhile(ends):
    guard, theirs = ends
    theirs.send({"type": "status", "status": to_plain(STATUS)})
    assert guard.status(timeout_s=0) == STATUS


def test_a_guard_that_says_nothing_is_given_up(ends):
    guard, _ = ends
    with pytest.raises(GuardGoneError, match="no status within 0 s"):
        guard.status(timeout_s=0)


def test_what_a_guard_has_said_is_handed_out_before_that_it_is_gone(ends):
    """Also what nobody has taken up by then, and when it is noticed by a word that it does not take."""
    guard, theirs = ends
    event = Event(at_ns=1, name="armed", detail="")
    theirs.send({"type": "event", "event": to_plain(event)})
    theirs.close()
    with pytest.raises(GuardGoneError):
        guard.submit({})
    with pytest.raises(GuardGoneError):
        guard.poll()
    assert guard.events() == [event]
    with pytest.raises(GuardGoneError):
        guard.events()
