"""``edgeguard run``: the guard itself, in the foreground, as a service runs it."""

from __future__ import annotations

import argparse
import grp
import json
import os
import shlex
import sys
from pathlib import Path

from edgeguard import interrupt
from edgeguard.cli.usable_profile import require_usable
from edgeguard.errors import ConfigError
from edgeguard.plain import to_plain
from edgeguard.runtime.assembly import Assembly, assemble
from edgeguard.runtime.process import Options
from edgeguard.runtime.serial_wire import named_port
from edgeguard.runtime.worker_command import find_model_folders, worker_argv
from edgeguard.service.service import ServiceOptions
from edgeguard.service.sockets import CONTROL_SOCKET, MESSAGE_SCHEMA, OBSERVE_SOCKET, default_sockets

_DESCRIPTION = f"""\
Guard the robot of CONFIG until told to end. Observations come as JSON messages on the Unix socket {OBSERVE_SOCKET}
(SOCK_SEQPACKET; --schema prints what it takes); edgeguard status, stop and rearm talk to the same guard. For systemd:
Type=notify, with the watchdog fed by the guard's tick.

The sockets are open to the same user and to root; --group lets a group feed observations (and stop the robot),
--operators lets a group re-arm it through {CONTROL_SOCKET} (and stop it).

SIGTERM, SIGINT: slow the robot down, end at standstill. SIGHUP: check CONFIG and PROFILE, and begin anew with them at
standstill; if they are wrong, nothing changes.

exit codes: 0 ended as told, or --check found nothing wrong; 2 the configuration is wrong; 5 the model has not been
built; 7 the profile is missing or another's; 9 another guard runs on this state directory or these sockets. A port that
is missing is waited for.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``run``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "run",
        help="guard the robot in the foreground, as a service does",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "config_place", type=Path, nargs="?", metavar="CONFIG", help="the robot's configuration (or --config CONFIG)"
    )
    parser.add_argument("--config", type=Path, metavar="CONFIG", help=argparse.SUPPRESS)
    add_guard(parser)
    parser.add_argument("--group", help="its members may send observations")
    parser.add_argument("--operators", metavar="GROUP", help="its members may re-arm")
    parser.add_argument("--check", action="store_true", help="say whether this could start, and exit")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of the messages, and exit")
    parser.set_defaults(func=run)


def add_guard(parser: argparse.ArgumentParser) -> None:
    """What a guard is started with beside its configuration: the same for it and for whoever looks whether it could."""
    parser.add_argument("--profile", type=Path, metavar="PROFILE", help="what edgeguard calibrate wrote")
    parser.add_argument("--port", help="the serial port (default: the configuration's)")
    parser.add_argument("--state-directory", type=Path, metavar="DIR", help="latch, lock and logs")
    add_sockets(parser)
    parser.add_argument("--worker", metavar="COMMAND", help="another worker's command line, {fd} for its channel")


def add_sockets(parser: argparse.ArgumentParser) -> None:
    """Where a guard's sockets are: the same for it and for whoever talks to it."""
    parser.add_argument(
        "--sockets",
        type=Path,
        metavar="DIR",
        help="where the sockets are (default: $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/edgeguard or /run/edgeguard)",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.schema:
        print(MESSAGE_SCHEMA.read_text(encoding="utf-8"), end="")
        return 0
    place = arguments.config_place or arguments.config
    if place is None:
        raise ConfigError("run needs the configuration: edgeguard run robot.toml --profile robot.profile.json")
    if arguments.profile is None:
        raise ConfigError(f"run needs --profile PROFILE; one is made with: edgeguard calibrate {place} --out PROFILE")
    assembly = assemble(place)
    require_usable(arguments.profile, assembly.config, own_worker=arguments.worker is not None)
    named_port(assembly.config, arguments.port)
    options = _options(arguments, assembly, place=place)
    if not arguments.check:
        service = [sys.executable, "-m", "edgeguard.service.service", json.dumps(to_plain(options))]
        sys.stdout.flush()
        interrupt.is_held_back()
        os.execv(sys.executable, service)  # the same process, without what only a command line needs
    return 0


def _options(arguments: argparse.Namespace, assembly: Assembly, *, place: Path) -> ServiceOptions:
    file, profile = place.absolute(), arguments.profile.absolute()
    if arguments.worker is None:
        worker = worker_argv(file, profile, models=find_model_folders(assembly.config))
    else:
        worker = shlex.split(arguments.worker)
    directory = arguments.state_directory
    guard = Options(
        config=str(file),
        profile=str(profile),
        worker=tuple(worker),
        state_directory=None if directory is None else str(directory.absolute()),
        port=arguments.port,
        await_port=True,
    )
    return ServiceOptions(
        guard=guard,
        sockets=str((arguments.sockets or default_sockets()).absolute()),
        group=_group(arguments.group),
        operators=_group(arguments.operators),
        command=(sys.executable, *sys.orig_argv[1:]),
    )


def _group(name: str | None) -> int | None:
    if name is None:
        return None
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ConfigError(f"there is no group {name!r} on this machine: groupadd --system {name}") from None
