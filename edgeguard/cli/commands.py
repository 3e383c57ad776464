"""All commands, and how one is run: a user's mistake gives one message and a documented exit code, no traceback."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

from edgeguard import __version__
from edgeguard.cli import (
    bench,
    calibrate,
    causes,
    check,
    compare,
    demo,
    doctor,
    estimate,
    init,
    install,
    log,
    model,
    operator,
    providers,
    replay,
    report,
    run,
    simulate,
    status,
    tune,
)
from edgeguard.cli.command_parser import WIDEST, CommandParser
from edgeguard.cli.wrapped import wrapped
from edgeguard.errors import ConfigError, EdgeguardError

_EVENING = """\
A deadline guard for robots with a language model on board.

a first evening:
  edgeguard demo                   a real model drives a simulated robot, and then everything that can fail does
  edgeguard init robot.toml        that robot's configuration, commented: make it yours
  edgeguard check robot.toml       what is wrong with it, and where its time goes
  edgeguard calibrate robot.toml --quick --out robot.profile.json
                                   what the model can be relied on to do on this machine
  edgeguard doctor robot.toml --profile robot.profile.json
                                   what is still in the way of driving with it
  edgeguard run robot.toml --profile robot.profile.json
                                   drive, once [link] port names the motor controller's serial port
"""

_ENDING = """\

Each has a --help of its own.

exit codes: 0 done, 2 wrong use or configuration, 3 machine too busy to judge, 4 the bound does not fit the deadline;
the others are listed in the README.
"""

_CHAPTERS = {
    "see it": (demo, simulate),
    "describe a robot": (init, check),
    "measure it": (calibrate, report, tune),
    "drive it": (run, status, operator, doctor, install),
    "look back": (log, replay, causes),
    "models, and what they could do": (model, compare, providers, bench, estimate),
}

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The disk is full, or this user's or process's part of it."""


def build_parser() -> CommandParser:
    parser = CommandParser(
        prog="edgeguard", usage="edgeguard [-h] [--version] COMMAND ...", description=_EVENING, add_help=False
    )
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"edgeguard {__version__}", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(prog="edgeguard", metavar="COMMAND", help=argparse.SUPPRESS)
    width, chapters = min(shutil.get_terminal_size().columns - 2, WIDEST), ""
    for title, modules in _CHAPTERS.items():
        before = len(commands._choices_actions)
        for module in modules:
            module.add_parser(commands)
        chapters += f"{title}:\n"
        for command in commands._choices_actions[before:]:
            entry = f"  {command.dest:<11}{command.help}"
            chapters += textwrap.fill(entry, width, subsequent_indent=" " * 13) + "\n"
    parser.epilog = chapters + _ENDING
    return parser


def run_command(argv: Sequence[str] | None) -> int:
    """Run one command, the process's own without ``argv``; the exit code. Each parser sets ``func(args) -> int``."""
    try:
        code = _run(build_parser(), argv)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        _write_no_more()
        return 0
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _write_no_more()
        named = "" if error.filename is None else f"{error.filename}: "
        print(f"edgeguard: {named}cannot be written any further ({error.strerror}); make room first", file=sys.stderr)
        return EdgeguardError.exit_code
    return code


def _run(parser: CommandParser, argv: Sequence[str] | None) -> int:
    arguments = parser.parse_args(argv)
    if "func" not in arguments:
        parser.print_help(sys.stderr)
        return ConfigError.exit_code
    try:
        return int(arguments.func(arguments))
    except EdgeguardError as error:
        for problem in error.problems if isinstance(error, ConfigError) else (str(error),):
            print(wrapped(f"edgeguard: {problem}", stream=sys.stderr), file=sys.stderr)
        return error.exit_code


def _write_no_more() -> None:
    """What is still on its way to stdout would be tried, and complained of, once more at the end of the process."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
