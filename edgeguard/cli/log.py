"""``edgeguard log``: read the black box. Follow it, show a stretch or one cycle, count, hand it to other programs."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from edgeguard.cli.decision import HEADER, REST, decision_line, event_line
from edgeguard.cli.files import file_to_write, picture_to_write
from edgeguard.cli.quantity import counted
from edgeguard.cli.run import add_sockets
from edgeguard.cli.times import add_stretch
from edgeguard.cli.wrapped import wrapped
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.errors import FlightLogError
from edgeguard.plain import to_plain
from edgeguard.recorder.export import EXPORTS, export_flight
from edgeguard.recorder.flight import Cycle, Flight, Rest, find_flights, last_flight
from edgeguard.recorder.follow import FlightFollower
from edgeguard.recorder.rotation import FLIGHT_LOG, flight_files
from edgeguard.recorder.statistics import FlightStatistics, statistics_of
from edgeguard.service.client import ServiceClient
from edgeguard.service.sockets import default_sockets
from edgeguard.types import CycleRecord, Event

_DESCRIPTION = """\
Read the flight log: one line per decision, and one more when something begins or ends.

  edgeguard log tail                              what the running guard decides, from its socket
  edgeguard log tail LOG                          the same from a file, as tail -f does, across rotation
  edgeguard log show LOG --from 60 --to 90        half a minute of the last start
  edgeguard log show LOG --cycle 117              one decision, in full
  edgeguard log show LOG --from 60 --plot p.png   a stretch as a picture
  edgeguard log stats LOG                         who decided, why not the model, how long it took, what is missing
  edgeguard log export LOG drive.mcap             for Foxglove; .parquet and .csv for tables

LOG is a file, or the state directory of a guard: then the rotated files before it belong to it too. Seconds count from
the guard's start. Of several starts the last one is meant; --start 1 is the one before it.

exit codes: 0 done; 2 a file cannot be written; 12 a package is missing; 14 there is no guard to listen to; 15 LOG
cannot be used.
"""

AGAIN_NS = 200 * NS_PER_MS
LINES = 10


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``log``; its commands set ``func(args) -> int``."""
    parser = commands.add_parser(
        "log",
        help="follow, show, count and export the flight log",
        description=_DESCRIPTION,
    )
    actions = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    tail = actions.add_parser("tail", help="follow the decisions as they are made")
    tail.add_argument("log", type=Path, nargs="?", metavar="LOG", help="a flight log (default: the guard's socket)")
    tail.add_argument("--no-follow", action="store_true", help=f"print the last {LINES} decisions of LOG, and end")
    tail.add_argument("--json", action="store_true", help="print one JSON object per line")
    add_sockets(tail)
    tail.set_defaults(func=_tail)
    show = _on_log(actions, "show", "a stretch of a flight, or one cycle in full", _show)
    add_stretch(show, of="of what is shown")
    show.add_argument("--cycle", type=int, metavar="N", help="only this decision, with everything that is known of it")
    show.add_argument(
        "--plot", type=picture_to_write, metavar="FILE", help="draw the stretch into this .png, .svg or .pdf"
    )
    show.add_argument("--json", action="store_true", help="print one JSON object per line")
    stats = _on_log(actions, "stats", "counts by source and cause, times, damage and gaps", _stats)
    stats.add_argument("--json", action="store_true", help="print one JSON object")
    export = _on_log(actions, "export", "write the decisions for other programs", _export)
    export.add_argument("file", type=file_to_write, metavar="FILE", help=f"what to write; ends in {', '.join(EXPORTS)}")
    add_stretch(export, of="of what is written")


def _on_log(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, about: str, func: object
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=about)
    parser.add_argument("log", type=Path, metavar="LOG", help="a flight log, or a guard's state directory")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="the N-th start before the last one")
    parser.set_defaults(func=func)
    return parser


def _head(*, as_json: bool) -> None:
    """The columns' names, for people."""
    if sys.stdout.isatty() and not as_json:
        print(HEADER)


def _tail(arguments: argparse.Namespace) -> int:
    _head(as_json=arguments.json)
    if arguments.log is None:
        with ServiceClient.any(arguments.sockets or default_sockets()) as client:
            _print(client.records(), as_json=arguments.json)
        return 0
    log = arguments.log / FLIGHT_LOG if arguments.log.is_dir() else arguments.log
    follower, clock = FlightFollower(log), SystemClock()
    try:
        told = list(follower.read())
        if not told and log.stat().st_size:
            last_flight(log)  # says what it is, if it is no flight log
        _print(_last(told), as_json=arguments.json)
        while not arguments.no_follow:
            clock.sleep_until_ns(clock.now_ns() + AGAIN_NS)
            _print(follower.read(), as_json=arguments.json)
    finally:
        follower.close()
    return 0


def _last(told: list[CycleRecord | Event]) -> list[CycleRecord | Event]:
    """The last few decisions, with the events among them."""
    decisions = [index for index, one in enumerate(told) if isinstance(one, CycleRecord)]
    return told[decisions[-LINES] :] if len(decisions) > LINES else told


def _print(told: Iterable[CycleRecord | Event], *, as_json: bool) -> None:
    for one in told:
        if as_json:
            name = "record" if isinstance(one, CycleRecord) else "event"
            print(json.dumps({"type": name, name: to_plain(one)}, default=str), flush=True)
        elif isinstance(one, Event):
            _say(event_line(one, at_ns=one.at_ns))
        else:
            _say(decision_line(one, at_ns=one.decision.decided_ns))


def _show(arguments: argparse.Namespace) -> int:
    flight = last_flight(arguments.log, back=arguments.start)
    if arguments.plot is not None:
        _draw(flight, arguments)
        return 0
    if arguments.cycle is not None:
        return _show_cycle(flight, arguments)
    _head(as_json=arguments.json)
    shown, decided = 0, 0
    for one in flight.stretch(from_ns=arguments.from_ns, to_ns=arguments.to_ns):
        shown, decided = shown + 1, decided + isinstance(one, Cycle)
        if arguments.json:
            print(json.dumps(_whole(one), default=str))
        else:
            _print_stretch(one)
    if not shown:
        raise FlightLogError(f"{arguments.log}: nothing happened there; edgeguard log stats says what it holds")
    if not decided and not arguments.json:
        _say(f"{arguments.log}: no decision was made there; the last event says why")
    return 0


def _show_cycle(flight: Flight, arguments: argparse.Namespace) -> int:
    for cycle in flight.cycles(from_ns=arguments.from_ns, to_ns=arguments.to_ns):
        if cycle.record.cycle == arguments.cycle:
            print(json.dumps(_whole(cycle), indent=2, default=str))
            return 0
    raise FlightLogError(f"{arguments.log}: no decision {arguments.cycle} there; edgeguard log stats counts them")


def _whole(one: Cycle | Rest) -> dict[str, object]:
    """``record`` is null of the events behind the last decision."""
    if isinstance(one, Rest):
        at_ns, step, record = one.events[-1].at_ns - one.origin_ns, None, None
    else:
        at_ns, step, record = one.at_ns, one.number, to_plain(one.record)
    return {"at_s": at_ns / NS_PER_S, "step": step, "record": record, "events": to_plain(one.events)}


def _print_stretch(one: Cycle | Rest) -> None:
    origin_ns = one.origin_ns if isinstance(one, Rest) else one.record.decision.decided_ns - one.at_ns
    for event in one.events:
        _say(event_line(event, at_ns=event.at_ns - origin_ns))
    if isinstance(one, Cycle):
        _say(decision_line(one.record, at_ns=one.at_ns))


def _say(line: str, *, hang: int = REST) -> None:
    print(wrapped(line, stream=sys.stdout, hang=hang), flush=True)


def _draw(flight: Flight, arguments: argparse.Namespace) -> None:
    from edgeguard.simulation.plot import draw
    from edgeguard.simulation.recorded import recorded_drive

    drive = recorded_drive(flight.entries(), from_ns=arguments.from_ns, to_ns=arguments.to_ns)
    about = f"recorded {drive.created}, from {arguments.log}"
    draw(drive.timeline, title="recorded drive", about=about, axes=drive.axes, file=arguments.plot)


def _export(arguments: argparse.Namespace) -> int:
    flight = last_flight(arguments.log, back=arguments.start)
    count = export_flight(flight, arguments.file, from_ns=arguments.from_ns, to_ns=arguments.to_ns)
    print(f"{arguments.file}: {count:,} decisions", file=sys.stderr)
    return 0


def _stats(arguments: argparse.Namespace) -> int:
    flights, files = find_flights(arguments.log), flight_files(arguments.log)
    found = statistics_of(last_flight(arguments.log, back=arguments.start))
    n_bytes = sum(file.stat().st_size for file in files)
    if arguments.json:
        print(json.dumps({**to_plain(found), "starts": len(flights), "files": len(files), "bytes": n_bytes}, indent=2))
        return 0
    n_files, n_starts = counted(len(files), "file"), counted(len(flights), "start")
    _say(f"{arguments.log}: {n_bytes / 1e6:,.2f} MB in {n_files}, {n_starts} of a guard")
    _say(f"the start of {found.created} with {found.config_file}:")
    for line in _lines(found):
        _say(f"  {line}", hang=13)
    return 0


def _shares(counts: Counter[str]) -> str:
    """How many answers were of each plan."""
    total = counts.total()
    return ", ".join(f"{name} {count:,} ({count / total:.1%})" for name, count in counts.most_common())


def _lines(found: FlightStatistics) -> list[str]:
    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda one: -one[1]))

    def spread(values: dict[str, float]) -> str:
        return " · ".join(f"{name} {value:g} ms" for name, value in values.items()) or "none"

    return [
        f"recorded   {found.duration_s:,.1f} s, {found.steps:,} steps, {found.decisions:,} decisions",
        f"decided by {listed(found.sources) or 'nobody yet'}",
        *([f"plans      {_shares(found.plans)}"] if found.plans else []),
        f"modes      {listed(found.modes) or 'none'}",
        f"causes     {listed(found.causes) or 'none'}",
        f"events     {listed(found.events) or 'none'}",
        f"command    {spread(found.command_ms)}; {found.late} late, {found.unsent} could not be sent",
        f"1st token  {spread(found.ttft_ms)}",
        *[f"missing    {flaw.detail}" for flaw in found.flaws],
    ]
