"""``edgeguard init``: write a commented configuration to start from: the demo's own."""

from __future__ import annotations

import argparse
from importlib import resources
from pathlib import Path

from edgeguard.errors import ConfigError


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "init",
        help="write a commented configuration to start from",
        description="Write the demo's configuration, commented key by key, to FILE; an existing file is left alone.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="for example robot.toml")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    content = resources.files("edgeguard.demo").joinpath("demo.toml").read_bytes()
    try:
        with arguments.file.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise ConfigError(f"{arguments.file}: exists and is left as it is; name another file") from error
    except OSError as error:
        raise ConfigError(
            f"{arguments.file}: cannot be written ({error.strerror}); name a file in a folder of yours"
        ) from error
    print(f"{arguments.file}: written. Next: edgeguard check {arguments.file}")
    return 0
