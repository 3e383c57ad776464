"""``edgeguard simulate``: scripted events in virtual time, with the guard's own core, link and motor controller."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from edgeguard.clock import NS_PER_S, SystemClock, ms_from_ns
from edgeguard.errors import ConfigError, FlightLogError
from edgeguard.plain import to_plain
from edgeguard.recorder.log import FlightWriter
from edgeguard.simulation.chart import EVENT_CELL, LABEL_WIDTH, MODE_CELLS, MODE_STYLES, Chart
from edgeguard.simulation.happening import KINDS
from edgeguard.simulation.judgement import Judgement, judge
from edgeguard.simulation.scenario import Scenario, read_scenario
from edgeguard.simulation.simulation import flight_header, simulate
from edgeguard.simulation.story import tell
from edgeguard.simulation.timeline import Timeline

if TYPE_CHECKING:
    from rich.console import Console

_DESCRIPTION = """\
Run what SCENARIO scripts: observations, late and missing answers, a worker that dies or hangs, a cable that is pulled,
an operator, a clock that jumps. The guard's core decides as it would on the robot; time is virtual, so that a minute
takes half a second, and the same scenario always gives the same run. Prints speed, mode and causes over time, what
happened, and whether it came as the scenario expects. The shipped scenarios in tests/scenarios say how one is written.

{keys}

exit codes: 0 as expected; 1 otherwise; 2 the scenario or the configuration cannot be used; 12 --plot needs matplotlib;
15 --log cannot be written.
"""

_WIDEST = 120
_MARGIN = 8
"""Columns that are left free on the right: for the scales."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``simulate``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "simulate",
        help="run scripted events in virtual time and show what the guard makes of them",
        description=_DESCRIPTION.format(keys=fill(f"keys of [start] and [[event]]: {', '.join(KINDS)}", 120)),
    )
    parser.add_argument("scenario", type=Path, metavar="SCENARIO", help="for example tests/scenarios/link_cut.toml")
    parser.add_argument("--config", type=Path, help="run it on this configuration instead of the scenario's own")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw it too (.png, .svg, .pdf; needs the extra plots)"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="record it as a flight log, for edgeguard replay")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    scenario = read_scenario(arguments.scenario, config=arguments.config)
    clock = SystemClock()
    began_ns = clock.now_ns()
    timeline = simulate(scenario) if arguments.log is None else _recorded(scenario, arguments.log)
    took_ns = clock.now_ns() - began_ns
    judgements = judge(scenario.expectation, timeline, scenario.assembly.config)
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
        print(json.dumps(_summary(scenario, timeline, judgements), indent=2))
    else:
        _show(scenario, timeline, judgements, took_ns=took_ns)
    return 0 if all(judgement.met for judgement in judgements) else 1


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


def _summary(scenario: Scenario, timeline: Timeline, judgements: list[Judgement]) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "about": scenario.about,
        "config": str(scenario.assembly.config.file),
        "digest": scenario.assembly.config.digest,
        "duration_ms": ms_from_ns(timeline.duration_ns),
        "steps": timeline.steps,
        "counters": to_plain(timeline.counters),
        "modes": [
            {"from_ms": ms_from_ns(span.begin_ns), "to_ms": ms_from_ns(span.end_ns), "mode": span.mode.value}
            for span in timeline.modes
        ],
        "causes": [
            {
                "from_ms": ms_from_ns(span.begin_ns),
                "to_ms": ms_from_ns(span.end_ns),
                "cause": span.cause.value,
                "grade": span.grade.name.lower(),
            }
            for span in timeline.causes
        ],
        "story": [
            {"at_ms": ms_from_ns(line.at_ns), "scripted": line.scripted, "words": line.words} for line in tell(timeline)
        ],
        "expectations": [{"words": one.words, "met": one.met} for one in judgements],
        "as_expected": all(one.met for one in judgements),
    }


def _show(scenario: Scenario, timeline: Timeline, judgements: list[Judgement], *, took_ns: int) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    run = f"{timeline.duration_ns / NS_PER_S:g} s of events in {ms_from_ns(took_ns):.0f} ms, {timeline.steps} steps"
    console.print(f"[bold]{scenario.name}[/]  [dim]{run}[/]")
    console.print(scenario.about, style="italic", markup=False, width=min(console.width, _WIDEST))
    console.print()
    _show_chart(console, scenario, timeline)
    console.print()
    _show_story(console, timeline)
    console.print()
    _show_judgements(console, judgements)


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


def _show_judgements(console: Console, judgements: list[Judgement]) -> None:
    unmet = [judgement for judgement in judgements if not judgement.met]
    if not judgements:
        console.print("nothing was expected of it", style="dim")
    elif not unmet:
        console.print(f"[green]as expected[/]  all {len(judgements)} expectations are met")
    for judgement in unmet:
        console.print(f"not as expected  {judgement.words}", style="red", markup=False)
