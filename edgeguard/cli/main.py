"""``edgeguard``: the entry point. A user's mistake gives one message and a documented exit code, no traceback."""

from __future__ import annotations

import argparse
import sys
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
from edgeguard.errors import ConfigError, EdgeguardError

INTERRUPTED = 130  # 128 + SIGINT, as shells report it

_EPILOG = """\
a first evening:
  edgeguard demo                       a real model drives a simulated robot, then everything that can fail does
  edgeguard model build smollm2-135m   fetch and build the model that the demo uses
  edgeguard init robot.toml            a commented configuration to start from
  edgeguard check robot.toml           everything that is wrong with a configuration, and where its time goes
  edgeguard calibrate robot.toml       measure on this machine what the model can be relied on to do

exit codes: 0 done, 2 wrong use or configuration, 3 machine too busy to judge, 4 the bound does not fit the deadline;
the others are listed in the README.
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edgeguard",
        description="A deadline guard for robots with a language model on board.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"edgeguard {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    every = (
        demo, init, check, calibrate, report, tune, estimate, bench, run, status, operator, model, compare, providers,
        simulate, replay, log, install, doctor, causes,
    )  # fmt: skip
    for command in every:
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Each parser sets ``func(args) -> int``."""
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.func(arguments))
    except ConfigError as error:
        for problem in error.problems:
            print(f"edgeguard: {problem}", file=sys.stderr)
        return error.exit_code
    except EdgeguardError as error:
        print(f"edgeguard: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("edgeguard: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
