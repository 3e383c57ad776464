"""``edgeguard install``: the files that make edgeguard a service of this machine, shown or written."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from edgeguard.errors import ConfigError
from edgeguard.plain import to_plain
from edgeguard.runtime.assembly import assemble
from edgeguard.runtime.model_choice import build_command
from edgeguard.service.installation import (
    HIDDEN_FROM_A_SERVICE,
    InstalledFile,
    next_steps,
    planned,
    unit_problems,
)

_DESCRIPTION = """\
Show what makes edgeguard a service of this machine: the systemd units, the user and the groups, the udev rules of the
serial port, the drivers that it needs, and CONFIG as /etc/edgeguard/robot.toml when it is named. A file that is there
and differs is shown line by line. --write writes them (as root); what only systemd can do is printed as commands and
never done for you.

  edgeguard install robot.toml                 what would be written, and what comes after it
  sudo /opt/edgeguard/bin/edgeguard install robot.toml --write

exit codes: 0 shown or written; 1 not permitted; 2 CONFIG or a unit is wrong, or edgeguard is where no service sees it.
"""

_SIGNS = {"new": "+", "changed": "~", "same": "="}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``install``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "install",
        help="make edgeguard a service of this machine",
        description=_DESCRIPTION,
    )
    parser.add_argument("config", type=Path, nargs="?", metavar="CONFIG", help="the robot's configuration")
    parser.add_argument("--write", action="store_true", help="write the files; without it they are only shown")
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="DIR", help="install below DIR (an image)")
    parser.add_argument(
        "--executable", type=Path, metavar="FILE", help="the edgeguard that the service runs (default: this one)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    executable = (arguments.executable or Path(sys.prefix) / "bin" / "edgeguard").absolute()
    _check_executable(executable, written=arguments.write)
    models = () if arguments.config is None else assemble(arguments.config).config.by_model
    files = planned(root=arguments.root, executable=executable, config=arguments.config)
    problems = unit_problems(files, root=arguments.root, executable=executable)
    if problems:
        raise ConfigError(problems)
    if arguments.write:
        for one in files:
            one.write()
    builds = [command for model in models if (command := build_command(model)) is not None]
    steps = next_steps(executable=executable, builds=builds, configured=arguments.config is not None)
    if arguments.json:
        print(json.dumps({"written": arguments.write, "files": _summary(files), "steps": to_plain(steps)}, indent=2))
        return 0
    for line in _lines(files):
        print(line)
    checked = "checked by systemd-analyze" if problems is not None else "systemd-analyze is not here to check them"
    print(f"\nthe units run {executable}; {checked}")
    if arguments.write:
        print("written. What is left to do:\n")
    else:
        print("nothing was written: add --write. What comes after that:\n")
    for command, reason in steps:
        print(f"  # {reason}\n  {command}")
    return 0


def _check_executable(executable: Path, *, written: bool) -> None:
    hidden = next((one for one in HIDDEN_FROM_A_SERVICE if executable.is_relative_to(one)), None)
    if hidden is not None and written:
        raise ConfigError(
            f"{executable} lies in {hidden}, which the service's sandbox hides: install edgeguard where it is seen, "
            "sudo python3 -m venv /opt/edgeguard && sudo /opt/edgeguard/bin/pip install …, and run that one's install"
        )


def _summary(files: list[InstalledFile]) -> list[dict[str, object]]:
    return [{"file": str(one.place), "state": one.state, "diff": one.diff()} for one in files]


def _lines(files: list[InstalledFile]) -> list[str]:
    lines = []
    for one in files:
        lines.append(f"{_SIGNS[one.state]} {one.place} ({one.state})")
        lines += [f"    {line}" for line in one.diff()]
    return lines
