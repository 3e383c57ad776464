"""``edgeguard simulate``: scripted events in virtual time, with the guard's own core, link and motor controller."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from edgeguard.cli.files import file_to_write, picture_to_write
from edgeguard.clock import NS_PER_S, SystemClock, ms_from_ns
from edgeguard.errors import ConfigError, FlightLogError
from edgeguard.recorder.log import FlightWriter
from edgeguard.simulation.chart import EVENT_CELL, LABEL_WIDTH, MODE_CELLS, MODE_STYLES, Chart
from edgeguard.simulation.happening import KINDS
from edgeguard.simulation.outcome import Outcome
from edgeguard.simulation.scenario import Scenario, read_scenario, scenario_files
from edgeguard.simulation.simulation import flight_header, simulate
from edgeguard.simulation.story import tell
from edgeguard.simulation.timeline import Timeline

if TYPE_CHECKING:
    from edgeguard.cli.console import Console

_DESCRIPTION = """\
Run what each SCENARIO scripts: observations, late and missing answers, a worker that dies or hangs, a cable that is
pulled, an operator, a clock that jumps. The guard's core decides as it would on the robot; time is virtual, so that a
minute takes half a second, and the same scenario always gives the same run. Prints speed, mode and causes over time,
what happened, and whether it came as the scenario expects. The shipped scenarios in tests/scenarios say how one is
written.

Of several, or of a folder (its robots' configurations are left out), each is one line of a table. Whatever is expected,
two things never happen: a stop that moves an axis away from its safe value, and a robot that moves unless it is armed
or a rule acts.

{keys}

exit codes: 0 all as expected; 1 otherwise; 2 a scenario or the configuration cannot be used; 12 --plot needs
matplotlib; 15 --log cannot be written.
"""

_WIDEST = 120
_MARGIN = 8
"""Columns that are left free on the right: for the scales."""

_COLUMNS = f"{'s':>6} {'decisions':>10} {'model':>6} {'misses':>7} {'trips':>6}  expectations"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``simulate``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "simulate",
        help="run scripted events in virtual time and show what the guard makes of them",
        description=_DESCRIPTION.format(keys=fill(f"keys of [start] and [[event]]: {', '.join(KINDS)}", 120)),
    )
    parser.add_argument(
        "scenarios",
        type=Path,
        nargs="+",
        metavar="SCENARIO",
        help="for example tests/scenarios/link_cut.toml, or the whole folder",
    )
    parser.add_argument("--config", type=Path, help="run it on this configuration instead of the scenario's own")
    parser.add_argument(
        "--plot", type=picture_to_write, metavar="FILE", help="draw it too (.png, .svg, .pdf; needs the extra plots)"
    )
    parser.add_argument(
        "--log", type=file_to_write, metavar="FILE", help="record it as a flight log, for edgeguard replay"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object; of several a list")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    files = scenario_files(arguments.scenarios)
    if files == arguments.scenarios and len(files) == 1:
        return _run_one(files[0], arguments)
    if arguments.plot is not None or arguments.log is not None:
        raise ConfigError("--plot and --log are of one run: name one scenario")
    return _run_several(_read_all(files, config=arguments.config), as_json=arguments.json)


def _run_one(file: Path, arguments: argparse.Namespace) -> int:
    scenario = read_scenario(file, config=arguments.config)
    clock = SystemClock()
    began_ns = clock.now_ns()
    timeline = simulate(scenario) if arguments.log is None else _recorded(scenario, arguments.log)
    took_ns = clock.now_ns() - began_ns
    outcome = Outcome.of(scenario, timeline)
    if arguments.plot is not None:
        from edgeguard.simulation.plot import draw

        draw(
            timeline,
            title=scenario.name.replace("_", " "),
            about=scenario.about,
            axes=scenario.assembly.config.axes,
            file=arguments.plot,
        )
    if arguments.json:
        print(json.dumps(outcome.document(), indent=2))
    else:
        _show(outcome, took_ns=took_ns)
    return 0 if outcome.good else 1


def _run_several(scenarios: Sequence[Scenario], *, as_json: bool) -> int:
    """Each run is shown as soon as it is over."""
    from edgeguard.cli.console import Console

    console, outcomes = Console(), []
    width = max(len("scenario"), *(len(scenario.name) for scenario in scenarios))
    if not as_json:
        console.print(f"{'scenario':<{width}} {_COLUMNS}", style="bold")
    for scenario in scenarios:
        outcome = Outcome.of(scenario, simulate(scenario))
        outcomes.append(outcome)
        if not as_json:
            _show_row(console, outcome, width=width)
    good = sum(outcome.good for outcome in outcomes)
    if as_json:
        print(json.dumps([outcome.document() for outcome in outcomes], indent=2))
    elif good == len(outcomes):
        console.print()
        console.print_headed("as expected", f"all {good} scenarios", style="green")
    else:
        console.print(f"\nnot as expected  {len(outcomes) - good} of {len(outcomes)} scenarios", style="red")
    return 0 if good == len(outcomes) else 1


def _read_all(files: Sequence[Path], *, config: Path | None) -> list[Scenario]:
    """``ConfigError`` lists everything that is wrong with any of them."""
    scenarios, problems = [], []
    for file in files:
        try:
            scenarios.append(read_scenario(file, config=config))
        except ConfigError as error:
            problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise ConfigError(problems)
    return scenarios


def _recorded(scenario: Scenario, file: Path) -> Timeline:
    """The run, written to a flight log of its own."""
    if file.exists():
        raise ConfigError(f"{file}: exists and is left as it is; name another file")
    writer = FlightWriter(file, header=flight_header(scenario.assembly.config))
    timeline = simulate(scenario, recorder=writer.append)
    writer.close()
    if writer.problem is not None:
        raise FlightLogError(f"{writer.problem}; {writer.lost} of {writer.lost + writer.written} steps are not in it")
    return timeline


def _show(outcome: Outcome, *, took_ns: int) -> None:
    from rich.text import Text

    from edgeguard.cli.console import Console

    scenario, timeline = outcome.scenario, outcome.timeline
    console = Console()
    run = f"{timeline.duration_ns / NS_PER_S:g} s of events in {ms_from_ns(took_ns):.0f} ms, {timeline.steps} steps"
    console.print(Text.assemble((scenario.name, "bold"), "  ", (run, "dim")))
    console.print(scenario.about, style="italic", width=min(console.width, _WIDEST))
    console.print()
    _show_chart(console, scenario, timeline)
    console.print()
    _show_story(console, timeline)
    console.print()
    _show_judgements(console, outcome)


def _show_chart(console: Console, scenario: Scenario, timeline: Timeline) -> None:
    from rich.text import Text

    width = min(console.width, _WIDEST) - LABEL_WIDTH - _MARGIN
    for line in Chart(timeline=timeline, axes=scenario.assembly.config.axes, width=max(20, width)).lines():
        console.print(Text.assemble(*line), soft_wrap=True)


def _show_story(console: Console, timeline: Timeline) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="dim")
    table.add_column()
    table.add_column()
    for line in tell(timeline):
        style = "magenta" if line.scripted else "" if line.mode is None else MODE_STYLES[line.mode]
        mark = EVENT_CELL if line.scripted else "" if line.mode is None else MODE_CELLS[line.mode]
        table.add_row(f"{line.at_ns / NS_PER_S:.3f} s", Text(mark, style=style), Text(line.words, style=style))
    console.print(table)


def _show_judgements(console: Console, outcome: Outcome) -> None:
    if not outcome.expectations:
        console.print("nothing was expected of it", style="dim")
    elif outcome.good:
        console.print_headed("as expected", f"all {len(outcome.expectations)} expectations are met", style="green")
    for complaint in outcome.complaints:
        console.print(complaint, style="red")


def _show_row(console: Console, outcome: Outcome, *, width: int) -> None:
    """One of several runs, and what was not met in it."""
    timeline, count = outcome.timeline, len(outcome.expectations)
    counters, unmet = timeline.counters, sum(not one.met for one in outcome.expectations)
    met = f"all {count} met" if not unmet else f"{unmet} of {count} not met"
    row = f"{timeline.duration_ns / NS_PER_S:>6g} {counters.cycles:>10} {counters.model:>6} {counters.misses:>7}"
    name = f"{outcome.scenario.name:<{width}}"
    console.print(f"{name} {row} {counters.trips:>6}  {met}", style="" if outcome.good else "red")
    for complaint in outcome.complaints:
        console.print(f"  {complaint}", style="red")
