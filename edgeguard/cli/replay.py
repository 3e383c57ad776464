"""``edgeguard replay``: run a flight log through the core again, or through the core of another configuration."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.files import picture_to_write
from edgeguard.cli.quantity import counted
from edgeguard.cli.times import add_stretch
from edgeguard.clock import NS_PER_S
from edgeguard.errors import FlightLogError
from edgeguard.plain import to_plain
from edgeguard.recorder.flight import find_flights, read_flights
from edgeguard.recorder.replay import Replay, Tally, replay
from edgeguard.recorder.second_opinion import Divergence, SecondOpinion, second_opinion
from edgeguard.runtime.assembly import assemble
from edgeguard.types import CycleRecord, Source

if TYPE_CHECKING:
    from edgeguard.cli.console import Console

_DESCRIPTION = """\
Run the recorded inputs of LOG through the guard's core again, with the configuration that the log holds. Every decision
must come out as it was recorded; what does not is a defect of edgeguard, or of the log. LOG is a file, or several, or
the state directory of a guard; the rotated files of one log are put in order, however they are named.

With --config OTHER: what another configuration of the same robot would have decided on the same inputs, as a table of
the decisions that differ. The recorded world does not react to them, and the model does not answer what it was not
asked.

With --plot FILE: the drive as a picture, commanded and measured, modes and causes; of a stretch with --from and --to.

exit codes: 0 everything is the same; 1 something differs; 2 OTHER cannot be used; 15 LOG cannot be used.
"""

SHOWN = 40
"""Rows of a table; --json has them all."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``replay``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "replay",
        help="run a flight log through the core again, or through another configuration's",
        description=_DESCRIPTION,
    )
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG", help="a flight log, or a guard's state directory")
    parser.add_argument("--config", type=Path, metavar="OTHER", help="decide with this configuration instead")
    parser.add_argument(
        "--plot", type=picture_to_write, metavar="FILE", help="draw the last start into this .png, .svg or .pdf"
    )
    add_stretch(parser, of="of the picture")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    entries = read_flights(*arguments.logs)
    if arguments.plot is not None:
        _draw(arguments)
    if arguments.config is None:
        outcome = replay(entries)
        _check(outcome.tally, arguments.logs)
        print(json.dumps(_replay_summary(outcome), indent=2)) if arguments.json else _show_replay(outcome)
        return 0 if outcome.identical else 1
    opinion = second_opinion(entries, assemble(arguments.config).config)
    _check(opinion.tally, arguments.logs)
    if arguments.json:
        print(json.dumps(_opinion_summary(opinion), indent=2))
    else:
        _show_opinion(opinion, arguments.config)
    return 1 if opinion.divergences else 0


def _draw(arguments: argparse.Namespace) -> None:
    from edgeguard.simulation.plot import draw
    from edgeguard.simulation.recorded import recorded_drive

    last = find_flights(*arguments.logs)[-1]
    drive = recorded_drive(last.entries(), from_ns=arguments.from_ns, to_ns=arguments.to_ns)
    about = f"recorded {drive.created}, from {_named(arguments.logs)}"
    draw(drive.timeline, title="recorded drive", about=about, axes=drive.axes, file=arguments.plot)


def _check(tally: Tally, logs: Sequence[Path]) -> None:
    if not tally.steps:
        flaws = "".join(f"; {flaw}" for flaw in tally.flaws)
        raise FlightLogError(f"{_named(logs)}: holds no step that can be replayed{flaws}")


def _named(logs: Sequence[Path]) -> str:
    return ", ".join(map(str, logs))


def words_of(record: CycleRecord | None, other: CycleRecord | None) -> str:
    """A decision in a few words, with what tells it from ``other``."""
    if record is None:
        return "no decision"
    decision = record.decision
    words = [decision.source.value]
    if decision.source is Source.SAFE:
        words = ["safe: " + (", ".join(cause.value for cause in decision.causes) or "a shadow")]
    if other is not None:
        parts = [("mode", decision.mode.value, other.decision.mode.value)]
        parts += [("grade", decision.grade.name.lower(), other.decision.grade.name.lower())]
        parts += [("rule", str(decision.rule), str(other.decision.rule))]
        parts += [("action", decision.set_point.action.value, other.decision.set_point.action.value)]
        if (decision.source, set(decision.causes)) == (other.decision.source, set(other.decision.causes)):
            words += [f"{name} {mine}" for name, mine, theirs in parts if mine != theirs]
    return ", ".join(words)


def _tally_summary(tally: Tally) -> dict[str, Any]:
    return {
        "starts": tally.starts,
        "steps": tally.steps,
        "decisions": tally.decisions,
        "skipped": tally.skipped,
        "duration_s": tally.duration_ns / NS_PER_S,
        "flaws": to_plain(tally.flaws),
    }


def _replay_summary(outcome: Replay) -> dict[str, Any]:
    differences = [
        {"step": one.number, "at_s": one.at_ns / NS_PER_S, "place": one.place, "then": one.then, "now": one.now}
        for one in outcome.differences
    ]
    return {**_tally_summary(outcome.tally), "identical": outcome.identical, "differences": differences}


def _opinion_summary(opinion: SecondOpinion) -> dict[str, Any]:
    divergences = [
        {
            "at_s": one.at_ns / NS_PER_S,
            "then": words_of(one.then, one.now),
            "now": words_of(one.now, one.then),
            "unanswered": one.unanswered,
        }
        for one in opinion.divergences
    ]
    return {
        **_tally_summary(opinion.tally),
        "agreed": opinion.agreed,
        "moved": opinion.moved,
        "divergences": divergences,
    }


def _show_replay(outcome: Replay) -> None:
    from rich.table import Table
    from rich.text import Text

    from edgeguard.cli.console import Console

    console = Console()
    _show_tally(console, outcome.tally)
    if outcome.identical:
        console.print_headed("identical", "every step came out as it was recorded", style="green")
        return
    table = Table(title="what differs", title_justify="left", box=None)
    table.add_column("step", justify="right")
    table.add_column("after", justify="right")
    for name in ("place", "then", "now"):
        table.add_column(name, overflow="ellipsis", max_width=44)
    for one in outcome.differences[:SHOWN]:
        table.add_row(str(one.number), _seconds(one.at_ns), *map(Text, (one.place, one.then, one.now)))
    console.print(table)
    n_differences = len(outcome.differences)
    found = f"{counted(n_differences, 'difference')}{_more(n_differences)}"
    console.print_headed("not identical", found, style="red")


def _show_opinion(opinion: SecondOpinion, config: Path) -> None:
    from rich.table import Table

    from edgeguard.cli.console import Console

    console = Console()
    _show_tally(console, opinion.tally)
    moved = f", {opinion.moved} of them on the way to another set-point" if opinion.moved else ""
    console.print(f"decided alike: {opinion.agreed}{moved}")
    if not opinion.divergences:
        console.print_headed("identical", "the other configuration would have decided nothing otherwise", style="green")
        return
    table = Table(title=f"decided otherwise with {config}", title_justify="left", box=None)
    table.add_column("after", justify="right")
    table.add_column("times", justify="right")
    table.add_column("then")
    table.add_column("with the other")
    rows = [_row(list(group)) for _, group in groupby(opinion.divergences, key=_row_key)]
    for row in rows[:SHOWN]:
        table.add_row(*row)
    console.print(table)
    found = f"{counted(len(opinion.divergences), 'decision')}{_more(len(rows))}"
    console.print_headed("different", found, style="yellow")


def _row_key(one: Divergence) -> tuple[str, str, bool]:
    return words_of(one.then, one.now), words_of(one.now, one.then), one.unanswered


def _row(group: list[Divergence]) -> tuple[str, str, str, str]:
    """Decisions in a row that differ in the same way are one row."""
    then, now, unanswered = _row_key(group[0])
    first, last = _seconds(group[0].at_ns), _seconds(group[-1].at_ns)
    after = first if len(group) == 1 else f"{first} to {last}"
    return after, str(len(group)), then, now + (" (asked what the recording cannot answer)" if unanswered else "")


def _show_tally(console: Console, tally: Tally) -> None:
    starts = "" if tally.starts == 1 else f" of {tally.starts} starts"
    console.print(
        f"{tally.steps:,} steps and {tally.decisions:,} decisions in {tally.duration_ns / NS_PER_S:,.1f} s{starts}"
    )
    for flaw in tally.flaws:
        console.print(str(flaw), style="yellow")
    if tally.skipped:
        console.print(f"{tally.skipped} steps could not be replayed: they follow a flaw", style="yellow")


def _seconds(time_ns: int) -> str:
    return f"{time_ns / NS_PER_S:.3f} s"


def _more(count: int) -> str:
    return f"; {count - SHOWN} rows more with --json" if count > SHOWN else ""
