"""A 50 Hz controller loop of your own, with the guard inside it (loop mode).

    python -m edgeguard.guide.loop_mode robot.toml --profile robot.profile.json --port /dev/ttyACM0 --said "go ahead"

You own the timer and the wire; the guard owns the decision. In every slot of the loop: read the motors, hand over what
the robot knows, call `tick`, write what it returns. The model runs in a process of its own; `tick` never waits for it.

The loop's own guard is the motor board: it must stop by itself when no line has come for the life in the last one.
That is the only thing that helps when this program hangs. A loop that is late is the cause *guard overrun*: the model
takes every core, so start it as `chrt --reset-on-fork --fifo 40 python -m edgeguard.guide.loop_mode …`.

`Motors` and `sense` are yours: here a board that reads lines of text, and an observation from the command line.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import serial

from edgeguard import LoopGuard
from edgeguard.errors import EdgeguardError
from edgeguard.types import Value

SLOT_S = 0.02

Sense = Callable[[], "tuple[Mapping[str, Value], float]"]
"""What the robot knows, and how many milliseconds ago it was captured."""


class Motors:
    """A board that reads ``v LINEAR ANGULAR LIFE_MS`` and answers ``odom LINEAR ANGULAR``. Never blocks."""

    def __init__(self, port: str) -> None:
        self._port = serial.Serial(port, 115_200, timeout=0, write_timeout=0, exclusive=True)
        self._heard = b""
        self.measured: Mapping[str, float | None] = {"linear": None, "angular": None}

    def read(self) -> Mapping[str, float | None]:
        """What the axes do, by the newest whole line."""
        *lines, self._heard = (self._heard + self._port.read(4096)).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError):  # half a line after the start, or noise: the next one comes soon
                _, linear, angular = line.decode("ascii").split()
                self.measured = {"linear": float(linear), "angular": float(angular)}
        return self.measured

    def write(self, axes: Mapping[str, float], *, life_ms: int) -> None:
        self._port.write(f"v {axes['linear']:.3f} {axes['angular']:.3f} {life_ms}\n".encode())

    def close(self) -> None:
        """Leave nothing in force: the last line would live on for its life."""
        self.write({"linear": 0.0, "angular": 0.0}, life_ms=0)
        self._port.close()


def drive(guard: LoopGuard, motors: Motors, sense: Sense, *, seconds: float) -> None:
    """The loop. A slot that was missed is skipped, never caught up with."""
    slot = time.monotonic()
    end = slot + seconds
    while slot < end:
        measured = motors.read()
        fields, age_ms = sense()
        guard.submit(fields, age_ms=age_ms)  # in every slot: the guard takes up the newest once per period
        command = guard.tick(measured=measured)
        if command is not None:
            motors.write(command.axes, life_ms=command.life_ms)
        for record in guard.poll():
            decision = record.decision
            causes = ", ".join(cause.value for cause in decision.causes)
            print(f"{record.cycle:6} {decision.mode.value:11} {decision.source.value:5} {causes}", flush=True)
        slot = max(slot + SLOT_S, time.monotonic())
        time.sleep(max(0.0, slot - time.monotonic()))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--profile", type=Path, required=True, help="what edgeguard calibrate wrote")
    parser.add_argument("--port", required=True, help="the motor board's serial port")
    parser.add_argument("--said", default="go ahead", help="what the operator says")
    parser.add_argument("--front-m", type=float, default=2.0, help="what the range sensor says")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--worker", default="", help="another model process, as of edgeguard run")
    arguments = parser.parse_args(argv)

    def sense() -> tuple[Mapping[str, Value], float]:
        return {"said": arguments.said, "front_m": arguments.front_m}, 0.0

    try:
        with (
            LoopGuard.start(arguments.config, profile=arguments.profile, worker=shlex.split(arguments.worker)) as guard,
            contextlib.closing(Motors(arguments.port)) as motors,  # closed first: ending a worker takes a while
            contextlib.suppress(KeyboardInterrupt),
        ):
            drive(guard, motors, sense, seconds=arguments.seconds)
    except EdgeguardError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return error.exit_code
    except serial.SerialException as error:
        print(f"{parser.prog}: --port: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
