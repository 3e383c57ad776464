"""``edgeguard demo``: a real model drives a simulated robot, and then everything that can fail does."""

from __future__ import annotations

import argparse
import json

_DESCRIPTION = """\
Fetches and builds a 135-million-parameter model, measures it on this machine, and lets it drive a simulated robot
through three rooms, five decisions a second, over a serial port, by an operator's words. Then it breaks what can break,
one thing after another, and shows who stops the robot and how soon. From nothing it takes some five minutes.

The timeline's columns: age of the observation, first pass, number of passes, time from the observation to the command
on the wire, slack that the bound leaves, commanded speed, the guard's mode, who decided what, and what was said.

exit codes: 0 no frame was late, the model made at least half of the fault-free decisions, and every fault ended well;
1 otherwise; 3 the machine was too busy to judge; 4 the measured bound does not fit the deadline on this machine.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "demo",
        help="a real model drives a simulated robot, and then everything that can fail does",
        description=_DESCRIPTION,
    )
    parser.add_argument("--cycles", type=_cycles, default=100, metavar="N", help="fault-free decisions (default: 100)")
    parser.add_argument("--no-faults", action="store_true", help="break nothing")
    parser.add_argument("--json", action="store_true", help="one summary object on stdout; the story goes to stderr")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.cli.console import Console
    from edgeguard.cli.progress import progress_bars
    from edgeguard.clock import SystemClock
    from edgeguard.demo.faults import FAULTS
    from edgeguard.demo.story import Story
    from edgeguard.demo.timeline import WIDTH

    console = Console(stderr=arguments.json)
    if not console.is_terminal:
        console.width = WIDTH
    story = Story(console=console, bars=progress_bars, clock=SystemClock())
    summary = story.tell(cycles=arguments.cycles, faults=() if arguments.no_faults else FAULTS)
    if arguments.json:
        print(json.dumps(summary.document()))
    return summary.exit_code


def _cycles(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text} is no number between 1 and 100000")
    return int(text)
