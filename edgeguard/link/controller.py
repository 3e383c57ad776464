"""The simulator's process: ``python -m edgeguard.link.controller --port /tmp/motors --axis linear 0.5 0.8``.

It runs ``ControllerCore`` on a pty in steps of 2 ms and outlives whoever sends it commands. With ``--control-fd`` it
speaks to its owner over ``edgeguard.channel`` (``edgeguard.link.simulator`` is the other end), and ends with it; alone
it runs until SIGTERM.

===========  ===========================================================================================
it says      meaning
===========  ===========================================================================================
``ready``    the port can be opened; realtime: FIFO priority was granted
``motion``   every 10 ms, dropped while nobody reads: t_ns, axes (what they measure)
``state``    the answer to everything it is told: t_ns, axes, position, travel, rest_since_ns, flags
``receipts`` before the answer to ``report``: a part of the accepted commands
``stops``    before the answer to ``report``: every stop, and the greatest lateness of a step
===========  ===========================================================================================

It is told ``where``, ``report`` (``since_ns``), ``freeze`` and ``thaw`` (it stops reading the wire), ``cut`` and
``restore`` (the port is unplugged), ``estop``, ``fault`` and ``clear``; anything else is dropped. Times are
those of the monotonic clock, comparable with the guard's. A starved simulator is late where a real motor controller is
not: it asks for the lowest real-time priority, and reports how late it was.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from edgeguard.channel import Channel, Message
from edgeguard.clock import NS_PER_MS, NS_PER_S, Clock, SystemClock
from edgeguard.link.codec import CODECS, make_codec
from edgeguard.link.controller_core import ControllerCore
from edgeguard.link.controller_log import Receipt
from edgeguard.link.motor import MotorAxis
from edgeguard.link.pty_port import PtyPort

_STEP_NS = 2 * NS_PER_MS
_MOTION_NS = 10 * NS_PER_MS
_RECEIPTS_PER_MESSAGE = 50
"""7 kB for two axes: far below the channel's limit, and quick enough to write for a step to stay short."""


class Simulation:
    """The loop of the process: the wire, the motion, and what the owner tells."""

    def __init__(self, *, core: ControllerCore, clock: Clock, port: Path, channel: Channel | None) -> None:
        self._core = core
        self._clock = clock
        self._path = port
        self._channel = channel
        self._port: PtyPort | None = PtyPort(path=port)
        self._frozen = False
        self._answers: deque[Message] = deque()
        self._latest_ns = 0
        self.done = False

    def run(self, *, realtime: bool) -> None:
        """Until ``done`` or until the owner is gone."""
        self._answers.append({"type": "ready", "realtime": realtime})
        step_ns = motion_ns = self._clock.now_ns()
        while not self.done:
            self._wait(step_ns)
            now_ns = self._clock.now_ns()
            self._serve_wire(now_ns)
            if now_ns >= step_ns:
                self._latest_ns = max(self._latest_ns, now_ns - step_ns)
                step_ns = now_ns + _STEP_NS
            if now_ns >= motion_ns:
                motion_ns = now_ns - now_ns % _MOTION_NS + _MOTION_NS
                if self._channel is not None and not self._answers:
                    self._channel.send({"type": "motion", "t_ns": now_ns, "axes": self._core.values})
            self._send_answers()
        self._cut()

    def _wait(self, until_ns: int) -> None:
        """Until the next step, a byte on the wire, or a word of the owner's."""
        watched: list[PtyPort | Channel] = []
        if self._port is not None and not self._frozen:
            watched.append(self._port)
        if self._channel is not None:
            watched.append(self._channel)
        readable = select.select(watched, [], [], max(0, until_ns - self._clock.now_ns()) / NS_PER_S)[0]
        if self._channel is not None and self._channel in readable:
            for message in self._channel.receive():
                self._listen(message)
            self.done = self.done or self._channel.closed

    def _serve_wire(self, now_ns: int) -> None:
        self._core.advance(now_ns)
        if self._port is not None and not self._frozen:
            reply = self._core.receive(self._port.read(), now_ns=now_ns)
            if reply:
                self._port.write(reply)

    def _listen(self, message: Message) -> None:
        now_ns = self._clock.now_ns()
        match message["type"]:
            case "where":
                self._core.advance(now_ns)
            case "report":
                self._tell_report(since_ns=int(message.get("since_ns", 0)))
            case "freeze" | "thaw" as told:
                self._frozen = told == "freeze"
            case "cut":
                self._cut()
            case "restore":
                self._port = self._port or PtyPort(path=self._path)
            case "estop":
                self._core.press_estop(now_ns=now_ns)
            case "fault":
                self._core.raise_fault(now_ns=now_ns)
            case "clear":
                self._core.clear()
            case _:
                return
        self._answers.append(self._state())

    def _cut(self) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None

    def _state(self) -> Message:
        core = self._core
        return {
            "type": "state",
            "t_ns": self._clock.now_ns(),
            "axes": core.values,
            "position": core.positions,
            "travel": core.travel,
            "rest_since_ns": core.rest_since_ns,
            "flags": int(core.flags),
        }

    def _tell_report(self, *, since_ns: int) -> None:
        receipts = [_receipt(receipt) for receipt in self._core.log.received if receipt.received_ns >= since_ns]
        for begin in range(0, len(receipts), _RECEIPTS_PER_MESSAGE):
            self._answers.append({"type": "receipts", "receipts": receipts[begin : begin + _RECEIPTS_PER_MESSAGE]})
        stops = [asdict(stop) for stop in self._core.log.stops if stop.began_ns >= since_ns]
        self._answers.append({"type": "stops", "stops": stops, "latest_step_ns": self._latest_ns})

    def _send_answers(self) -> None:
        """One answer a step, so that a long report delays no frame; a full channel is tried again."""
        if self._channel is None:
            self._answers.clear()
        elif self._answers and self._channel.send(self._answers[0]):
            self._answers.popleft()


def _receipt(receipt: Receipt) -> Message:
    """``asdict`` copies deeply: a long log would take a hundred steps."""
    return {
        "received_ns": receipt.received_ns,
        "sequence": receipt.sequence,
        "action": receipt.action.value,
        "axes": receipt.axes,
        "life_ms": receipt.life_ms,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the parts and run until told to end."""
    options = _parse(arguments)
    holding = set(options.holds)
    clock = SystemClock()
    core = ControllerCore(
        axes=[
            MotorAxis(name=name, accel=float(accel), decel=float(decel), holds=name in holding)
            for name, accel, decel in options.axis
        ],
        codec=make_codec(options.codec, axes=[name for name, _, _ in options.axis], options=options.options),
        link_timeout_ms=options.link_timeout_ms,
        draw_session=_draw_session,
        latch=options.latch,
        start_ns=clock.now_ns(),
    )
    channel = None if options.control_fd is None else Channel.from_fd(options.control_fd)
    simulation = Simulation(core=core, clock=clock, port=options.port, channel=channel)

    def end(_signal: int, _frame: object) -> None:
        simulation.done = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    simulation.run(realtime=_ask_for_real_time())
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m edgeguard.link.controller", description="A simulated motor controller."
    )
    parser.add_argument("--port", type=Path, required=True, help="the symbolic link to make for the port")
    parser.add_argument(
        "--axis", nargs=3, action="append", required=True, metavar=("NAME", "ACCEL", "DECEL"), help="rates per second"
    )
    parser.add_argument("--holds", action="append", default=[], metavar="NAME", help="an axis that stops where it is")
    parser.add_argument("--link-timeout-ms", type=int, default=80)
    parser.add_argument("--codec", choices=list(CODECS), default="cobs")
    parser.add_argument("--options", type=json.loads, default={}, help="of the codec, as JSON")
    parser.add_argument("--latch", action="store_true", help="after a stop of its own, wait for a new session")
    parser.add_argument("--control-fd", type=int, help="the owner's end of a channel")
    return parser.parse_args(arguments)


def _draw_session() -> int:
    """A number that the session before it had with a chance of 2**-32; 0 is not one."""
    return int.from_bytes(os.urandom(4), "little") or 1


def _ask_for_real_time() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except PermissionError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
