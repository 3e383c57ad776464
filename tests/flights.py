"""Recorded flights for tests: short simulated runs, as a file or as the steps that are in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from edgeguard.recorder.log import FlightEntry, FlightReader, FlightWriter, read_flight
from edgeguard.recorder.record import FlightStep, encode_step
from edgeguard.simulation.scenario import Scenario, read_scenario
from edgeguard.simulation.simulation import flight_header, simulate

SCENARIOS = Path(__file__).parent / "scenarios"

SCRIPT = """
duration_ms = {duration_ms}
[start]
fields = {{ said = "go on", front_m = 5.0, docked = false }}
age_ms = 10
answer = {{ speed = 0.5, turn = "straight", grip = true }}
latency_ms = 110
bound_ms = 140
"""


def script(folder: Path, *, more: str = "", duration_ms: int = 2_000, robot: str | None = None) -> Scenario:
    """A robot that drives, and whatever ``more`` does to it; ``robot`` is another configuration's text."""
    file, config = folder / "script.toml", folder / "robot.toml"
    config.write_text((SCENARIOS / "robot.toml").read_text() if robot is None else robot)
    file.write_text(SCRIPT.format(duration_ms=duration_ms) + more)
    return read_scenario(file)


def robot_toml(**replaced: str) -> str:
    """The scenarios' robot with other values: ``miss_limit="2"``."""
    lines = (SCENARIOS / "robot.toml").read_text().splitlines()
    for key, value in replaced.items():
        at = next(index for index, line in enumerate(lines) if line.startswith(f"{key} ="))
        lines[at] = f"{key} = {value}"
    return "\n".join(lines)


def record(scenario: Scenario, file: Path) -> Path:
    """The scenario's run as a flight log in ``file``, behind what is there already."""
    writer = FlightWriter(file, header=flight_header(scenario.assembly.config))
    simulate(scenario, recorder=writer.append)
    writer.close()
    assert writer.problem is None
    return file


def entries_of(data: bytes) -> list[FlightEntry]:
    reader = FlightReader()
    return [*reader.feed(data), *reader.finish()]


def steps_of(entries: Iterable[FlightEntry]) -> list[FlightStep]:
    return [entry for entry in entries if isinstance(entry, FlightStep)]


def rewrite(file: Path, to: Path, change) -> Path:
    """The log with every step changed by ``change``, which returns the step to write in its place, or ``None``."""
    entries = list(read_flight(file))
    writer = FlightWriter(to, header=entries[0])
    for step in steps_of(entries):
        changed = change(step)
        if changed is not None:
            assert writer.append(encode_step(changed), begins_block=changed.before is not None)
    writer.close()
    return to
