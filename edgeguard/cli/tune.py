"""``edgeguard tune``: find the setting with the best tail on this machine, and write it into the configuration."""

from __future__ import annotations

import argparse
import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.positive import require_positive
from edgeguard.cli.progress import progress_bars
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.config import load_config
from edgeguard.errors import ConfigError

if TYPE_CHECKING:
    from edgeguard.bench.speed.setting import Setting
    from edgeguard.bench.speed.tune import Tuning

_HELP = """\
Tries how a pass is run on the CPU: the number of threads, whether they spin, where they are pinned, how work is cut
among them. What the model answers does not change. Each setting is a real worker of CONFIG's robot; they are asked by
turns, at the robot's period, so let nothing else compute meanwhile but what the robot itself runs.

What counts is the tail, not the mean: the 95th percentile, or another one (--percentile). A setting is kept only if its
tail is lower in 95 of 100 resamplings, and what was found must beat what is configured once more at the end.

Without --write nothing is changed. With it, what was found is put into CONFIG, whose comments stay. A calibration
belongs to its settings: calibrate again afterwards.

  edgeguard tune robot.toml                      some minutes
  edgeguard tune robot.toml --requests 400 --percentile 99 --write

exit codes: 0 done, whatever was found; 2 the configuration is wrong; 3 the machine is too busy to measure.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``tune``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "tune",
        help="find the threads, spinning and affinity with the best tail here",
        description=_HELP,
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the robot's configuration")
    parser.add_argument(
        "--requests", type=int, default=100, metavar="N", help="of each setting and round (default: 100)"
    )
    parser.add_argument("--percentile", type=float, default=95.0, metavar="P", help="what a tail is (default: 95)")
    parser.add_argument("--write", action="store_true", help="put what was found into CONFIG")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.calibration.sampling import wait_until_quiet
    from edgeguard.bench.speed.tune import tune
    from edgeguard.bench.subject import model_folders
    from edgeguard.board import FixedKernel
    from edgeguard.runtime.worker_command import worker_argv

    require_positive(arguments, "requests")
    if not 50 <= arguments.percentile < 100:
        raise ConfigError(f"--percentile {arguments.percentile:g}: must be at least 50 and below 100")
    least = math.ceil(100 / (100 - arguments.percentile))
    if arguments.requests < least:
        raise ConfigError(f"--requests {arguments.requests}: the {arguments.percentile:g}th percentile needs {least}")
    config, clock = load_config(arguments.config), SystemClock()
    wait_until_quiet(FixedKernel(clock=clock))
    with progress_bars() as progress:
        folders = model_folders(config, progress=progress)
        tuning = tune(
            config,
            command=lambda file: worker_argv(file, None, models=folders),
            processors=sorted(os.sched_getaffinity(0)),
            clock=clock,
            share=arguments.percentile / 100,
            requests=arguments.requests,
            progress=progress,
        )
    report(tuning, file=arguments.config, write=arguments.write, as_json=arguments.json)
    return 0


def report(tuning: Tuning, *, file: Path, write: bool, as_json: bool) -> None:
    """Write what was found if that is wanted, and say it."""
    write = write and tuning.found != tuning.before
    if write:
        rewrite(file, tuning)
    if as_json:
        print(json.dumps(_summary(tuning, written=write), indent=2))
    else:
        _show(tuning, file=file, written=write)


def rewrite(file: Path, tuning: Tuning) -> None:
    """Whole or not at all: a robot may start meanwhile."""
    from edgeguard.bench.speed.setting import written

    text = written(file.read_bytes().decode("utf-8-sig"), tuning.found, before=tuning.before)
    target = file.resolve()
    scratch = target.with_name(f".{target.name}.new")
    try:
        scratch.write_bytes(text.encode())
        scratch.chmod(target.stat().st_mode & 0o777)
        scratch.replace(target)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror}); it is as it was") from error


def _summary(tuning: Tuning, *, written: bool) -> dict[str, Any]:
    return {
        "percentile": 100 * tuning.share,
        "requests": tuning.requests,
        "before": _keys(tuning.before),
        "found": _keys(tuning.found),
        "better": tuning.found != tuning.before,
        "written": written,
        "rounds": [
            {
                "knob": held.knob,
                "tried": [
                    {
                        **_keys(one.setting),
                        "p50_ms": one.median_ns / NS_PER_MS,
                        "tail_ms": one.tail_ns / NS_PER_MS,
                        "sure": one.better,
                        "kept": at == held.kept,
                    }
                    for at, one in enumerate(held.tried)
                ],
            }
            for held in tuning.rounds
        ],
    }


def _keys(setting: Setting) -> dict[str, Any]:
    return {"threads": setting.threads, "session_options": dict(setting.session_options)}


def _show(tuning: Tuning, *, file: Path, written: bool) -> None:
    from rich.table import Table

    from edgeguard.cli.console import Console

    console = Console()
    table = Table(box=None, pad_edge=False)
    for name in ("", "setting", "p50 ms", f"p{100 * tuning.share:g} ms", "better", ""):
        table.add_column(name, justify="right" if "ms" in name or name == "better" else "left")
    for held in tuning.rounds:
        table.add_section()
        for at, one in enumerate(held.tried):
            kept = "kept" if at == held.kept else ""
            times = (f"{one.median_ns / NS_PER_MS:.2f}", f"{one.tail_ns / NS_PER_MS:.2f}")
            sure = f"{one.better:.0%}" if at else ""
            table.add_row(
                held.knob if at == 0 else "", str(one.setting), *times, sure, kept, style="bold" if kept else None
            )
    console.print(table)
    if tuning.found == tuning.before:
        console.print(f"\nnothing really is better than what {file} says: {tuning.before}")
        return
    final = tuning.rounds[-1].tried
    console.print(
        f"\n{tuning.found}: p{100 * tuning.share:g} {final[1].tail_ns / NS_PER_MS:.2f} ms instead of "
        f"{final[0].tail_ns / NS_PER_MS:.2f} ms, better in {final[1].better:.0%} of the resamplings"
    )
    if written:
        console.print(f"{file}: written. A calibration belongs to its settings: edgeguard calibrate {file}")
    else:
        console.print(f"{file} is as it was; --write puts it in")
