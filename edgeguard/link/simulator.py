"""A handle on a simulated motor controller in a process of its own: for the demo, the tests, and trying things out.

The process lives in a session of its own, so that neither the guard's death nor a Ctrl-C takes it along; it ends with
``close``, or when the process that holds the handle does. Calls wait for the answer; ``LinkError`` when none comes.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from edgeguard.channel import Channel, Message
from edgeguard.errors import LinkError
from edgeguard.link.controller_log import Receipt, Stop, StopCause
from edgeguard.link.motor import MotorAxis
from edgeguard.types.wire import Action, MotorFlag

_PATIENCE_S = 30.0  # one that has died is noticed at once
_MOTIONS_KEPT = 1_000
"""Ten seconds of motion, for an owner that looks seldom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """What every axis measured at ``t_ns``."""

    t_ns: int
    axes: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorState:
    """Where the motor controller stands. ``travel`` never shrinks: distances are differences of it."""

    t_ns: int
    axes: Mapping[str, float]
    position: Mapping[str, float]
    travel: Mapping[str, float]
    rest_since_ns: int | None
    flags: MotorFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerReport:
    """The second witness: what arrived and when, every stop and why. ``latest_step_ns``: how late it was itself."""

    received: tuple[Receipt, ...]
    stops: tuple[Stop, ...]
    latest_step_ns: int


class Simulator:
    """A running simulator; ``port`` is the path to open. Use it as a context manager."""

    def __init__(
        self,
        *,
        axes: Sequence[MotorAxis],
        link_timeout_ms: int = 80,
        latch: bool = False,
        codec: str = "cobs",
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Start the process and wait until the port can be opened."""
        self._directory = tempfile.TemporaryDirectory(prefix="edgeguard-motors-")
        self.port = str(Path(self._directory.name) / "port")
        self._channel, theirs = Channel.pair()
        self._motions: deque[Motion] = deque(maxlen=_MOTIONS_KEPT)
        command = [sys.executable, "-m", "edgeguard.link.controller", "--port", self.port, "--codec", codec]
        command += [
            "--options",
            json.dumps(dict(options)),
            "--link-timeout-ms",
            str(link_timeout_ms),
            "--control-fd",
            str(theirs.fileno()),
        ]
        for axis in axes:
            command += ["--axis", axis.name, repr(axis.accel), repr(axis.decel)]
            command += ["--holds", axis.name] if axis.holds else []
        with theirs:
            self._process = subprocess.Popen(
                [*command, "--latch"] if latch else command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self.realtime: bool = self._await("ready")[0]["realtime"]

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Readable when there is motion to read."""
        return self._channel.fileno()

    def motions(self) -> list[Motion]:
        """The motion since the last call, oldest first, one every 10 ms."""
        self._sort(self._channel.receive())
        motions = list(self._motions)
        self._motions.clear()
        return motions

    def where(self) -> MotorState:
        return self._tell("where")

    def freeze(self) -> MotorState:
        """It stops reading the wire, and says nothing there."""
        return self._tell("freeze")

    def thaw(self) -> MotorState:
        return self._tell("thaw")

    def cut(self) -> MotorState:
        """Unplug the port."""
        return self._tell("cut")

    def restore(self) -> MotorState:
        """Plug it in again, under the same name."""
        return self._tell("restore")

    def estop(self) -> MotorState:
        """Press the red button, until ``clear``."""
        return self._tell("estop")

    def fault(self) -> MotorState:
        """Let the drive fail, until ``clear``."""
        return self._tell("fault")

    def clear(self) -> MotorState:
        return self._tell("clear")

    def report(self, *, since_ns: int = 0) -> ControllerReport:
        """What was received and why it stopped, from ``since_ns`` on."""
        self._channel.send({"type": "report", "since_ns": since_ns})
        messages = self._await("state")
        stops = next(message for message in messages if message["type"] == "stops")
        return ControllerReport(
            received=tuple(
                _read_receipt(one)
                for message in messages
                if message["type"] == "receipts"
                for one in message["receipts"]
            ),
            stops=tuple(_read_stop(one) for one in stops["stops"]),
            latest_step_ns=stops["latest_step_ns"],
        )

    def close(self) -> None:
        """End the process."""
        self._channel.close()  # it ends with its owner's end of the channel
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._directory.cleanup()

    def _tell(self, what: str) -> MotorState:
        self._channel.send({"type": what})
        state = self._await("state")[-1]
        return MotorState(
            t_ns=state["t_ns"],
            axes=_floats(state["axes"]),
            position=_floats(state["position"]),
            travel=_floats(state["travel"]),
            rest_since_ns=state["rest_since_ns"],
            flags=MotorFlag(state["flags"]),
        )

    def _await(self, kind: str) -> list[Message]:
        """All answers up to the first of this ``kind``."""
        answers: list[Message] = []
        while not any(message["type"] == kind for message in answers):
            if not select.select([self._channel], [], [], _PATIENCE_S)[0] or self._channel.closed:
                self.close()
                raise LinkError(f"the motor-controller simulator is gone (exit status {self._process.returncode})")
            answers += self._sort(self._channel.receive())
        return answers

    def _sort(self, messages: list[Message]) -> list[Message]:
        """Keep the motion for ``motions``, and return the rest."""
        for message in messages:
            if message["type"] == "motion":
                self._motions.append(Motion(t_ns=message["t_ns"], axes=_floats(message["axes"])))
        return [message for message in messages if message["type"] != "motion"]


def _floats(values: Mapping[str, Any]) -> dict[str, float]:
    """A channel's decimals as floats."""
    return {name: float(value) for name, value in values.items()}


def _read_receipt(one: Mapping[str, Any]) -> Receipt:
    return Receipt(
        received_ns=one["received_ns"],
        sequence=one["sequence"],
        action=Action(one["action"]),
        axes=_floats(one["axes"]),
        life_ms=one["life_ms"],
    )


def _read_stop(one: Mapping[str, Any]) -> Stop:
    return Stop(
        began_ns=one["began_ns"],
        cause=StopCause(one["cause"]),
        values=_floats(one["values"]),
        rest_ns=one["rest_ns"],
        distance=None if one["distance"] is None else _floats(one["distance"]),
    )
