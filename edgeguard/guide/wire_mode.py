"""A program that only wants decisions: the guard has the serial port and the clock (wire mode).

    python -m edgeguard.guide.wire_mode robot.toml --profile robot.profile.json --said "go ahead"

`Guard.start` starts a process of its own that speaks to the motor controller in every tick. This program says what the
robot knows, once per period, and reads what was decided. When it is slow, stuck or dead no frame is late: without an
observation the rules act, and they stop the robot. However it ends, the guard slows the robot down, and ends at
standstill.

`sense` is yours: here an observation from the command line.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from edgeguard import Guard
from edgeguard.errors import EdgeguardError
from edgeguard.types import Value

Sense = Callable[[], "tuple[Mapping[str, Value], float]"]
"""What the robot knows, and how many milliseconds ago it was captured."""


def drive(guard: Guard, sense: Sense, *, periods: int | None = None) -> None:
    """One decision per period, and what it was; the guard arms itself as soon as the model has proved itself."""
    for _ in itertools.islice(guard.periods(), periods):
        fields, age_ms = sense()
        decision = guard.decide(fields, age_ms=age_ms).decision
        axes = " ".join(f"{name} {value:+.2f}" for name, value in decision.set_point.axes.items())
        causes = ", ".join(cause.value for cause in decision.causes)
        print(f"{decision.mode.value:11} {decision.source.value:5} {axes}  {causes}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--profile", type=Path, required=True, help="what edgeguard calibrate wrote")
    parser.add_argument("--port", help="the motor controller's serial port (default: the configuration's)")
    parser.add_argument("--said", default="go ahead", help="what the operator says")
    parser.add_argument("--front-m", type=float, default=2.0, help="what the range sensor says")
    parser.add_argument("--periods", type=int, help="how many decisions (default: until Ctrl-C)")
    parser.add_argument("--worker", default="", help="another model process, as of edgeguard run")
    arguments = parser.parse_args(argv)

    def sense() -> tuple[Mapping[str, Value], float]:
        return {"said": arguments.said, "front_m": arguments.front_m}, 0.0

    try:
        with (
            Guard.start(
                arguments.config,
                profile=arguments.profile,
                port=arguments.port,
                worker=shlex.split(arguments.worker),
            ) as guard,
            contextlib.suppress(KeyboardInterrupt),
        ):
            drive(guard, sense, periods=arguments.periods)
    except EdgeguardError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
