"""``edgeguard calibrate``: measure on this machine what the model can be relied on to do."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.progress import progress_bars
from edgeguard.clock import SystemClock, ms_from_ns, ns_from_ms
from edgeguard.config import load_config
from edgeguard.errors import BoundError

if TYPE_CHECKING:
    from edgeguard.bench.verdict import Verdict
    from edgeguard.budget import Profile
    from edgeguard.config import Config

_HELP = """\
Runs the model of CONFIG as the robot will: its prompt, its answer schema, its period, on this machine. From that it
knows how long a request takes at most, with a stated confidence, and says whether that fits the deadline. The profile
belongs to this model, this machine and these settings; the guard refuses it on any other.

--quick takes a minute or two and shows a miss rate of 1 %. Without it, it takes as long as showing max_miss_rate
takes: ten minutes for 0.001 at 5 Hz. Let nothing else compute meanwhile but what the robot itself runs.

exit codes: 0 the bound fits; 3 the machine is too busy to measure; 4 the bound does not fit (the profile is written all
the same, and the deadline that would fit is named).
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``calibrate``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "calibrate",
        help="measure on this machine what the model can be relied on to do",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the robot's configuration")
    parser.add_argument("--quick", action="store_true", help="aim at a miss rate of 1 %%, five minutes at most")
    parser.add_argument(
        "--out", type=Path, metavar="PROFILE", help="where to write the profile (default: in the user's cache)"
    )
    parser.add_argument(
        "--age-ms",
        type=float,
        default=0.0,
        metavar="MS",
        help="how old an observation is when it is handed over (default: 0)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.calibrate import calibrate
    from edgeguard.bench.profile_store import cached_file, write_profile
    from edgeguard.model.build import default_cache_dir

    config = load_config(arguments.config)
    with progress_bars() as progress:
        profile = calibrate(config, clock=SystemClock(), quick=arguments.quick, progress=progress)
    file = arguments.out or cached_file(
        profile.fingerprint, period_ns=config.timing.period_ns, cache_dir=default_cache_dir()
    )
    write_profile(profile, file)
    return report(profile, file=file, config=config, age_ns=ns_from_ms(arguments.age_ms), as_json=arguments.json)


def report(profile: Profile, *, file: Path, config: Config, age_ns: int, as_json: bool) -> int:
    """Print the verdict; the exit code."""
    from edgeguard.bench.verdict import judge, overhead_of

    verdict = judge(profile, config=config, overhead=overhead_of(config, age_ns=age_ns))
    if as_json:
        print(json.dumps(_summary(verdict, file)))
    else:
        _print_table(verdict, file)
    return 0 if verdict.fits else BoundError.exit_code


def _summary(verdict: Verdict, file: Path) -> dict[str, Any]:
    bound = verdict.profile.bound
    return {
        "profile": str(file),
        "fits": verdict.fits,
        "bound_ms": ms_from_ns(bound.bound_ns),
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
        "busy": verdict.profile.schedule.busy,
    }


def _print_table(verdict: Verdict, file: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, words in verdict.rows():
        colour = "green" if verdict.fits else "red"
        table.add_row(name, words, style=colour if name == "fits" else "")
    table.add_row("profile", str(file))
    Console(highlight=False).print(table)
