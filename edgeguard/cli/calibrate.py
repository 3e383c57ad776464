"""``edgeguard calibrate``: measure on this machine what the model can be relied on to do."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.files import file_to_write
from edgeguard.cli.progress import progress_bars
from edgeguard.cli.times import add_age
from edgeguard.clock import NS_PER_S, SystemClock, ms_from_ns
from edgeguard.config import load_config
from edgeguard.errors import BoundError

if TYPE_CHECKING:
    from edgeguard.bench.calibration.effort import Effort
    from edgeguard.bench.calibration.verdict import Verdict
    from edgeguard.budget import Profile
    from edgeguard.config import Config

_HELP = """\
Runs the model of CONFIG as the robot will: its prompt, its answer schema, its period, on this machine, cool and then as
hot as it gets. From that it knows how long a request takes at most, with a stated confidence, and says whether that
fits the deadline. The profile belongs to this model, this machine and these settings; the guard refuses it elsewhere.

--quick takes two to five minutes, shows a miss rate of 1 %, and does not heat the board; its bounds are stretched by a
margin. Without it, it takes as long as showing max_miss_rate takes, cool and hot: an hour for 0.001 at 5 Hz. Let
nothing else compute meanwhile but what the robot itself runs: --with starts that, and ends it again.

What has been sampled is beside the profile (PROFILE.samples.gz) at once. After Ctrl-C, a kill or a power cut, --resume
goes on from there.

exit codes: 0 the bound fits; 2 the configuration, or --with, is wrong; 3 the machine is too busy to measure;
4 the bound does not fit (the profile is written all the same, and the deadline that would fit is named); 7 the profile
cannot be written, or --resume finds nothing that was measured on this.
"""

MINUTE_NS = 60 * NS_PER_S


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``calibrate``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "calibrate",
        help="measure on this machine what the model can be relied on to do",
        description=_HELP,
    )
    parser.add_argument(
        "config_place", type=Path, nargs="?", metavar="CONFIG", help="the robot's configuration (or --config CONFIG)"
    )
    parser.add_argument("--config", type=Path, metavar="CONFIG", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="for first use: a miss rate of 1 %%, not heated")
    parser.add_argument(
        "--out", type=file_to_write, metavar="PROFILE", help="where to write the profile (default: in the user's cache)"
    )
    parser.add_argument("--with", dest="companion", metavar="COMMAND", help="the robot's own software, run beside")
    parser.add_argument(
        "--soak", type=_minutes, metavar="MINUTES", help="heat the board for so long at most (default: 30; 0: not)"
    )
    parser.add_argument(
        "--limit", type=_minutes, metavar="MINUTES", help="for the requests at each level (default: 60; --quick: 5)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with what an interrupted calibration had sampled")
    add_age(parser, default_ns=0, said="0")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(func=run)


def _minutes(text: str) -> int:
    """In nanoseconds."""
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1.0
    if not 0 <= minutes <= 24 * 60:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and {24 * 60} minutes")
    return round(minutes * MINUTE_NS)


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.calibration.calibrate import calibrate
    from edgeguard.bench.calibration.journal import Journal
    from edgeguard.bench.calibration.profile_store import cached_file
    from edgeguard.bench.subject import model_subject
    from edgeguard.board import read_fingerprint
    from edgeguard.errors import ConfigError
    from edgeguard.places import default_cache_dir

    place = arguments.config_place or arguments.config
    if place is None:
        raise ConfigError("calibrate needs the configuration: edgeguard calibrate robot.toml")
    config = load_config(place)
    with progress_bars() as progress:
        subject = model_subject(config, progress=progress)
        fingerprint = {**read_fingerprint(), **subject.identity()}
        file = arguments.out or cached_file(
            fingerprint, period_ns=config.timing.period_ns, cache_dir=default_cache_dir()
        )
        with kept_when_ended(Journal.beside(file).file):
            profile = calibrate(
                config,
                clock=SystemClock(),
                out=file,
                effort=effort_of(arguments),
                resume=arguments.resume,
                companion=arguments.companion,
                progress=progress,
                subject=subject,
            )
    return report(profile, file=file, config=config, age_ns=arguments.age_ns, as_json=arguments.json)


def effort_of(arguments: argparse.Namespace) -> Effort:
    """How much is measured: the full or the quick way, as changed by --soak and --limit."""
    from edgeguard.bench.calibration.effort import FULL, QUICK

    effort = QUICK if arguments.quick else FULL
    if arguments.soak is not None:
        effort = replace(effort, soak_ns=arguments.soak)
    return effort if arguments.limit is None else replace(effort, limit_ns=arguments.limit)


@contextlib.contextmanager
def kept_when_ended(samples: Path) -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does: what it started is ended too, and it says where its samples are."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        if samples.exists():
            print(f"edgeguard: {samples} has what was sampled; the same command with --resume goes on", file=sys.stderr)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def report(profile: Profile, *, file: Path, config: Config, age_ns: int, as_json: bool) -> int:
    """Print the verdict; the exit code."""
    from edgeguard.bench.calibration.verdict import judge, overhead_of

    verdict = judge(profile, config=config, overhead=overhead_of(config, age_ns=age_ns))
    if as_json:
        print(json.dumps(_summary(verdict, file)))
    else:
        _print_table(verdict, file)
        _print_next(file, config=config.file)
    return 0 if verdict.fits else BoundError.exit_code


def _summary(verdict: Verdict, file: Path) -> dict[str, Any]:
    profile, bound = verdict.profile, verdict.profile.bound
    return {
        "profile": str(file),
        "kind": profile.kind,
        "fits": verdict.fits,
        "bound_ms": ms_from_ns(bound.bound_ns),
        "margin": profile.margin,
        "available_ms": ms_from_ns(verdict.available_ns),
        "slack_ms": ms_from_ns(verdict.slack_ns),
        "fitting_deadline_ms": verdict.fitting_deadline_ms,
        "percentile": bound.percentile,
        "confidence": bound.confidence,
        "n": bound.n,
        "effective_n": bound.effective_n,
        "misses": verdict.misses,
        "miss_rate": verdict.miss_rate,
        "max_miss_rate": verdict.max_miss_rate,
        "per_hour": verdict.per_hour,
        "thermal": profile.thermal,
        "reached": profile.reached.label,
        "thermal_limit": profile.soak is not None and profile.soak.reached,
        "plans": [
            {
                "name": rung,
                "bound_ms": ms_from_ns(profile.bound_of(rung).bound_ns),
                "slack_ms": ms_from_ns(verdict.slack_of_ns(rung)),
                "fits": verdict.slack_of_ns(rung) >= 0,
            }
            for rung in verdict.plans
        ],
        "bounds": [
            {
                "level": one.level.label,
                "rung": one.rung,
                "drafted": one.drafted,
                "bound_ms": ms_from_ns(one.times(profile.margin).bound_ns),
                "percentile": one.percentile,
                "n": one.n,
                "effective_n": one.effective_n,
            }
            for one in profile.bounds
        ],
        "busy": profile.schedule.busy,
    }


def _print_table(verdict: Verdict, file: Path) -> None:
    from rich.table import Table

    from edgeguard.cli.console import Console

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    colours = {"fits": "green" if verdict.fits else "red", "warning": "yellow", "margin": "yellow"}
    for name, words in verdict.rows():
        table.add_row(name, words, style=colours.get(name, ""))
    table.add_row("profile", str(file))
    Console().print(table)


def _print_next(file: Path, *, config: Path) -> None:
    """Whole commands, for whoever copies them."""
    print(f"\nall of it, with plots:  edgeguard report {file} --config {config} -o {file.stem}.html")
    print(f"what it leaves of the deadline:  edgeguard check {config} --profile {file}")
