"""``edgeguard doctor``: what is in the way of a guard on this machine, and the way out of it."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from edgeguard import __version__
from edgeguard.cli.run import add_guard
from edgeguard.cli.wrapped import wrapped
from edgeguard.errors import ConfigError
from edgeguard.service.sockets import default_sockets

_DESCRIPTION = """\
Look at everything that a guard needs and say for each thing whether it is ok, what is wrong with it, and the way out:
configuration, model and one timed answer by the provider that is really used, profile and fingerprint, the budget with
the ages that were recorded, cores, real time, clocks, heat, the serial port and who else wants it, disk and clock.
It changes nothing. A guard that runs is asked, not disturbed; without one, the model is loaded once (--no-model: not)
and the port is opened (--no-port: not), which resets some motor controllers.

  edgeguard doctor robot.toml --profile robot.profile.json
  sudo edgeguard doctor --as-service        the same with the service's user, limits and sandbox

What it prints holds no secrets: it is what to put into a bug report.

exit codes: 0 everything is ok; 1 warnings; 2 something is wrong, or it could not look.
"""

_SIGNS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}
_TEXT = 21  # the column where it begins


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``doctor``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "doctor",
        help="what is in the way of a guard on this machine, and the way out",
        description=_DESCRIPTION,
    )
    parser.add_argument("config", type=Path, nargs="?", metavar="CONFIG", help="the robot's configuration")
    add_guard(parser)
    parser.add_argument("--no-model", action="store_true", help="do not load the model")
    parser.add_argument("--no-port", action="store_true", help="do not open the serial port")
    parser.add_argument(
        "--as-service",
        nargs="?",
        const="edgeguard.service",
        metavar="UNIT",
        help="as this unit would see it (default: edgeguard.service); needs root",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.as_service is not None:
        return _examine_as_service(arguments)
    if arguments.config is None:
        raise ConfigError("doctor needs the configuration: edgeguard doctor robot.toml; or --as-service")
    return _examine(arguments)


def _examine_as_service(arguments: argparse.Namespace) -> int:
    from edgeguard.doctor.as_service import examine_as_service

    options = [name for name in ("json", "no_model", "no_port") if getattr(arguments, name)]
    done = examine_as_service(arguments.as_service, [f"--{name.replace('_', '-')}" for name in options])
    sys.stderr.write(done.complaints)
    sys.stdout.write(done.printed)
    return done.code


def _examine(arguments: argparse.Namespace) -> int:
    from edgeguard.doctor.examine import examine
    from edgeguard.doctor.finding import Level
    from edgeguard.doctor.patient import Patient

    patient = Patient(
        config_file=arguments.config,
        profile=arguments.profile,
        sockets=arguments.sockets or default_sockets(),
        given_state_directory=arguments.state_directory,
        given_port=arguments.port,
        worker=None if arguments.worker is None else shlex.split(arguments.worker),
        asks_model=not arguments.no_model,
        opens_port=not arguments.no_port,
    )
    worst, found, last = Level.OK, [], ""
    if not arguments.json:
        print(f"edgeguard {__version__}, Python {sys.version.split()[0]}")
    for name, finding in examine(patient):
        worst = max(worst, finding.level)
        level = finding.level.name.lower()
        found.append({"check": name, "level": level, "text": finding.text, "remedy": finding.remedy})
        if not arguments.json:
            _print(f"{_SIGNS[level]}  {name if name != last else '':<14} {finding.text}", hang=_TEXT)
            if finding.remedy:
                _print(f"{'':{_TEXT}}-> {finding.remedy}", hang=_TEXT + 3)
        last = name
    if arguments.json:
        print(json.dumps({"version": __version__, "level": worst.name.lower(), "findings": found}, indent=2))
    return worst.value


def _print(line: str, *, hang: int) -> None:
    print(wrapped(line, stream=sys.stdout, hang=hang), flush=True)
