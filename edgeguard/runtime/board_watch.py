"""The board's watch: a process of ordinary priority that looks at the board, so that no sensor can hold the guard up.

``python -m edgeguard.runtime.board_watch FD [SOAKED_C]`` forks the process that looks, about once a second, and sends
each look as a message of ``edgeguard.channel``. ``SOAKED_C`` is the hottest sensor as calibration soaked it. When that
process dies, the first one, its keeper, forks another, so that the guard itself never does while it has real-time
priority. Both end when the guard's end closes. The watch may be late or dead: nobody waits for it, and ``BoardWatch``
says when it has been silent for too long.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import subprocess
import sys

from edgeguard.board import Thermometer, find_board
from edgeguard.channel import Channel
from edgeguard.clock import NS_PER_S, Clock, SystemClock
from edgeguard.messages import board_message, read_board
from edgeguard.types import BoardState, ThermalLevel

LOOK_EVERY_NS = NS_PER_S
SILENT_NS = 5 * LOOK_EVERY_NS

BACK_OFF_FIRST_NS = NS_PER_S
BACK_OFF_LIMIT_NS = 30 * NS_PER_S
"""Whoever has looked for longer than this begins with the first back-off again."""


class BoardWatch:
    """The guard's end. Start it before asking for real-time priority."""

    def __init__(self, *, now_ns: int, soaked_c: float | None = None) -> None:
        self._channel, theirs = Channel.pair()
        with theirs:
            argv = [sys.executable, "-m", "edgeguard.runtime.board_watch", str(theirs.fileno())]
            if soaked_c is not None:
                argv.append(repr(soaked_c))
            self._process = subprocess.Popen(
                argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )  # Ctrl-C is ours: it ends with its channel
        self._last = BoardState(
            level=ThermalLevel.NOMINAL, observed=False, critical=False, hottest_c=None, read_ns=now_ns
        )
        self._silent = False

    @property
    def pid(self) -> int:
        """The keeper's."""
        return self._process.pid

    def newest(self, now_ns: int) -> BoardState | None:
        """The newest look that has arrived since the last call, if one has. Never blocks.

        When the last one is ``SILENT_NS`` old, the board is unobserved, which is said once; its level stays.
        """
        looks = [look for message in self._channel.receive() if (look := read_board(message)) is not None]
        if looks:
            self._last, self._silent = looks[-1], False
            return self._last
        if self._silent or now_ns - self._last.read_ns < SILENT_NS:
            return None
        self._silent = True
        silence = f"the board's watch has been silent for {(now_ns - self._last.read_ns) / NS_PER_S:.0f} s"
        return dataclasses.replace(self._last, observed=False, read_ns=now_ns, detail=silence)

    def close(self) -> None:
        """Let it end."""
        self._channel.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:  # a sensor holds the one that looks, which ends when it is let go
            self._process.kill()
            self._process.wait()


def watch(channel: Channel, thermometer: Thermometer, *, look_every_ns: int = LOOK_EVERY_NS) -> None:
    """Look and tell until the other end closes. A look that the guard has no room for is lost: the next is newer."""
    while not channel.closed:
        channel.send(board_message(thermometer.look()))
        if select.select([channel], [], [], look_every_ns / NS_PER_S)[0]:
            channel.receive()


def back_off_ns(deaths: int) -> int:
    """How long after the last of so many deaths in quick succession the next process is forked."""
    return min(BACK_OFF_FIRST_NS << (deaths - 1), BACK_OFF_LIMIT_NS)


def is_to_look(channel: Channel, clock: Clock) -> bool:
    """True in every process that is forked to look; false in the keeper, once the guard's end has closed."""
    deaths = 0
    while not channel.closed:
        began_ns = clock.now_ns()
        pid = os.fork()
        if pid == 0:
            return True
        os.waitpid(pid, 0)
        deaths = 1 if clock.now_ns() - began_ns > BACK_OFF_LIMIT_NS else deaths + 1
        if select.select([channel], [], [], back_off_ns(deaths) / NS_PER_S)[0]:
            channel.receive()  # the guard says nothing: this is its end
    return False


def main(argv: list[str]) -> None:
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # whoever started us may be a real-time thread
    soaked_c = float(argv[1]) if len(argv) > 1 else None
    channel, clock = Channel.from_fd(int(argv[0])), SystemClock()
    if is_to_look(channel, clock):
        watch(channel, Thermometer(find_board(), clock=clock, soaked_c=soaked_c))


if __name__ == "__main__":
    main(sys.argv[1:])
