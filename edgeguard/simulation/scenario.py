"""Reads a scenario: a robot's configuration, a script of what happens to it, and what must come of that.

A scenario is a TOML file, read as strictly as a configuration. The comment at its top says what it shows. ::

    config = "robot.toml"            # beside it; --config puts another in its place
    duration_ms = 6000
    [world]                          # what no event changes; all have defaults
    observation_period_ms = 200
    worker_start_ms = 300
    shrinks = { front_m = "linear" } # a distance, and the axis that moves towards its end
    [start]                          # the world at 0, with the keys of an event
    fields = { said = "go on", front_m = 3.0 }
    answer = { speed = 0.5 }
    latency_ms = 110
    [[event]]
    at_ms = 3000
    latency_ms = 400                 # the keys of an event: edgeguard/simulation/happening.py
    [expect]                         # edgeguard/simulation/expectation.py
    causes = ["miss"]
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeguard.clock import ms_from_ns
from edgeguard.config.reader import Problems, Table
from edgeguard.config.toml import read_toml
from edgeguard.errors import ConfigError
from edgeguard.runtime.assembly import Assembly, assemble
from edgeguard.simulation.expectation import Expectation, read_expectation
from edgeguard.simulation.happening import Happening, read_happening
from edgeguard.simulation.values import LONGEST_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """``about`` is the comment at the top; ``events`` are in the order of their times."""

    name: str
    about: str
    assembly: Assembly
    duration_ns: int
    observation_period_ns: int
    worker_start_ns: int
    shrinks: Mapping[str, str]
    start: Happening
    events: tuple[Happening, ...]
    expectation: Expectation


def read_scenario(path: Path, *, config: Path | None = None) -> Scenario:
    """The scenario in ``path``, on ``config`` instead of its own; ``ConfigError`` lists everything that is wrong."""
    content, document = read_toml(path, what="a scenario's TOML file")
    if "axis" in document:
        raise ConfigError(
            f"{path}: is a robot's configuration, not a scenario; name a scenario, and with --config {path} it is run "
            "on this robot"
        )
    problems = Problems(str(path))
    root = Table(document, path="", problems=problems)
    named = root.text("config", default="robot.toml")
    if config is None and not (path.parent / named).is_file():
        root.refuse("config", f"{named} is not there; name the robot's configuration, or give one with --config")
        problems.raise_if_any()
    assembly = assemble(config or path.parent / named)
    scenario = _read(root, name=path.stem, about=_comment(content.decode("utf-8-sig")), assembly=assembly)
    root.close()
    problems.raise_if_any()
    return scenario


def scenario_files(paths: Sequence[Path]) -> list[Path]:
    """The files among ``paths``, and of each folder among them its scenarios: a robot's configuration is none."""
    files = []
    for path in paths:
        found = (
            [file for file in sorted(path.glob("*.toml")) if not _is_configuration(file)] if path.is_dir() else [path]
        )
        if not found:
            raise ConfigError(f"{path}: there is no scenario in it (*.toml)")
        files += found
    return files


def _is_configuration(file: Path) -> bool:
    """What cannot be read is for ``read_scenario`` to complain about."""
    try:
        return "axis" in read_toml(file, what="a scenario")[1]
    except ConfigError:
        return False


def _read(root: Table, *, name: str, about: str, assembly: Assembly) -> Scenario:
    config = assembly.config
    duration_ns = root.milliseconds("duration_ms", low=1, high=LONGEST_MS)
    start = read_happening(root.table("start"), config, at_ns=0)
    events = [read_happening(table, config) for table in root.tables("event")]
    world = root.table("world")
    scenario = Scenario(
        name=name,
        about=about,
        assembly=assembly,
        duration_ns=duration_ns,
        observation_period_ns=world.milliseconds(
            "observation_period_ms", default=ms_from_ns(config.timing.period_ns), low=1, high=LONGEST_MS
        ),
        worker_start_ns=world.milliseconds("worker_start_ms", default=300, low=0, high=LONGEST_MS),
        shrinks=_read_shrinks(world, assembly),
        start=start,
        events=tuple(sorted(events, key=lambda one: one.at_ns)),
        expectation=read_expectation(root.table("expect"), config),
    )
    world.close()
    return scenario


def _read_shrinks(world: Table, assembly: Assembly) -> dict[str, str]:
    table = world.table("shrinks")
    axes = [axis.name for axis in assembly.config.axes]
    shrinks = {field: table.text(field, among=axes) for field in table.names()}
    for field in shrinks:
        if assembly.config.field(field) is None:
            table.refuse(field, "no [[field]] has this name")
    return shrinks


def _comment(text: str) -> str:
    """The comment that the file begins with, as one paragraph."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return " ".join(line.lstrip("#").strip() for line in lines)
