"""``edgeguard report``: what a calibration has found, as a page to pin to the wall or a summary in the terminal."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.files import file_to_write
from edgeguard.cli.progress import progress_bars
from edgeguard.cli.times import add_age
from edgeguard.clock import SystemClock, ms_from_ns
from edgeguard.errors import ConfigError, ProfileError

if TYPE_CHECKING:
    from rich.table import Table

    from edgeguard.bench.calibration.coverage import Coverage
    from edgeguard.budget import Profile
    from edgeguard.report.estimates import Estimates
    from edgeguard.report.page import Report

_HELP = """\
Shows what a calibration has found. With -o, as one HTML page that needs nothing else, to open anywhere or to print:
latency over the run beside temperature and clock; how latencies are spread, with the tail, the bound and its
confidence; what passes cost, measured and priced; TTFT by the length of the prompt, a step by its context; what was
visited and what was not; the budget of one request. Each plot says what it shows and what would be bad. The profile is
inside. Without -o, a summary.

  edgeguard report robot.profile.json --config robot.toml -o robot.html

--config judges it by the deadline and the accepted miss rate of a configuration. --coverage adds whether the bounds
hold here, from a run of calibration/coverage.py on the same model, board and settings. --measure, on the calibrated
board only, times this machine for a few seconds, and puts what the roofline says is possible beside what was measured.
What single passes took is in the samples beside the profile (PROFILE.samples.gz): keep them with it.

exit codes: 0 done, whatever the verdict is; 2 wrong use or configuration; 7 the profile cannot be used, or is of
another period than the configuration; 12 the page needs the extra "plots".
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``report``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "report",
        help="what a calibration has found: a page for the wall, or a summary",
        description=_HELP,
    )
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="what edgeguard calibrate has written")
    parser.add_argument("-o", "--out", type=file_to_write, metavar="FILE.html", help="write the page")
    parser.add_argument("--config", type=Path, metavar="CONFIG", help="judge it by this configuration")
    parser.add_argument("--coverage", type=Path, metavar="FILE.json", help="what calibration/coverage.py has written")
    add_age(parser, default_ns=0, said="0")
    parser.add_argument("--measure", action="store_true", help="time this machine, for what would be possible")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a summary")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    report = _report(arguments)
    if arguments.out is not None:
        _write(report, arguments.out)
    if arguments.json:
        print(json.dumps(_summary(report), indent=2))
    elif arguments.out is None:
        _show(report, arguments)
    else:
        print(f"{arguments.out}: written. {report.headline}")
    return 0


def _report(arguments: argparse.Namespace) -> Report:
    from edgeguard.bench.calibration.verdict import judge, overhead_of
    from edgeguard.budget import load_profile
    from edgeguard.config import load_config
    from edgeguard.report.page import Report
    from edgeguard.report.samples import read_samples

    if arguments.measure and arguments.config is None:
        raise ConfigError("--measure needs --config: the model whose passes are estimated is named there")
    profile = load_profile(arguments.profile)
    if not profile.requests:
        raise ProfileError(f"{arguments.profile}: has no requests; measure again with: edgeguard calibrate CONFIG")
    verdict = None
    if arguments.config is not None:
        config = load_config(arguments.config)
        there, here = (ms_from_ns(one.period_ns) for one in (profile.schedule, config.timing))
        if there != here:
            raise ProfileError(
                f"{arguments.profile}: is of another period than {arguments.config} ({there:g} ms -> {here:g} ms): "
                f"measure again with: edgeguard calibrate {arguments.config}"
            )
        verdict = judge(profile, config=config, overhead=overhead_of(config, age_ns=arguments.age_ns))
    return Report(
        name=arguments.profile.name,
        profile=profile,
        samples=read_samples(profile, arguments.profile),
        estimates=_estimates(arguments, profile),
        verdict=verdict,
        coverage=None if arguments.coverage is None else _coverage(arguments.coverage, profile),
        judged_by="" if arguments.config is None else arguments.config.name,
    )


def _coverage(file: Path, profile: Profile) -> Coverage:
    """Whether bounds hold, of the same as ``profile``."""
    from edgeguard.bench.calibration.coverage import read_coverage

    coverage = read_coverage(file)
    changed = profile.differences(coverage.fingerprint)
    if coverage.period_ns != profile.schedule.period_ns:
        then, now = (ms_from_ns(one) for one in (profile.schedule.period_ns, coverage.period_ns))
        changed.append(f"period: {then:g} ms -> {now:g} ms")
    if changed:
        raise ProfileError(f"{file}: is of something else than the profile ({'; '.join(changed)}); measure it here")
    return coverage


def _estimates(arguments: argparse.Namespace, profile: Profile) -> Estimates:
    from edgeguard.report.estimates import estimates_of

    if not arguments.measure:
        return estimates_of(profile)
    from edgeguard.bench.speed.machine import measure_machine
    from edgeguard.bench.speed.model_figures import model_figures
    from edgeguard.bench.subject import model_folder
    from edgeguard.config import load_config

    with progress_bars() as progress:
        model, figures = model_figures(model_folder(load_config(arguments.config).by_model[0], progress=progress))
        machine = measure_machine(clock=SystemClock(), accuracy_level=model.accuracy_level, progress=progress)
    return estimates_of(profile, model=figures, machine=machine)


def _write(report: Report, file: Path) -> None:
    from edgeguard.report.page import page

    content = page(report)
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror}); name another -o") from error


def _summary(report: Report) -> dict[str, Any]:
    profile, verdict, visits = report.profile, report.verdict, report.visits
    return {
        "profile": report.name,
        "kind": profile.kind,
        "created": profile.created,
        "headline": report.headline,
        "fits": None if verdict is None else verdict.fits,
        "slack_ms": None if verdict is None else ms_from_ns(verdict.slack_ns),
        "miss_rate": None if verdict is None else verdict.miss_rate,
        "per_hour": None if verdict is None else verdict.per_hour,
        "budget": {part.name: part.span_ms for part in report.parts},
        "bounds": [
            {
                "level": bound.level.label,
                "rung": bound.rung,
                "drafted": bound.drafted,
                "bound_ms": ms_from_ns(bound.times(profile.margin).bound_ns),
                "percentile": bound.percentile,
                "confidence": bound.confidence,
                "n": bound.n,
                "effective_n": bound.effective_n,
                "lag": bound.lag,
                "ljung_box_p": bound.ljung_box_p,
                "gpd_shape": bound.gpd_shape,
            }
            for bound in profile.bounds
        ],
        "passes": [
            {"tokens": one.tokens, "price_ms": one.price_ms, "tokens_per_s": one.per_s, "best_ms": one.best_ms}
            for one in report.estimates.passes
        ],
        "visited": dict(visits.visited),
        "missed": dict(visits.missed),
        "coverage": None if report.coverage is None else report.coverage.document(),
        "fingerprint": dict(profile.fingerprint),
    }


def _show(report: Report, arguments: argparse.Namespace) -> None:
    from rich.text import Text

    from edgeguard.bench.calibration.words import cell_name, percentile_name
    from edgeguard.cli.console import Console

    verdict, visits = report.verdict, report.visits
    console = Console()
    style = "bold" if verdict is None else "bold green" if verdict.fits else "bold red"
    console.print(Text(report.headline, style=style))
    bounds = (bound.times(report.profile.margin) for bound in report.profile.bounds)
    promised = tuple(
        (
            cell_name(bound),
            f"{ms_from_ns(bound.bound_ns):6.1f} ms  {percentile_name(bound.percentile)}, {bound.n:,} requests, "
            f"{bound.effective_n:,} independent",
        )
        for bound in bounds
    )
    parts = tuple((part.name, f"{part.span_ms:6.1f} ms  {part.words}") for part in report.parts)
    for title, rows in (
        ("", report.verdict_rows),
        ("the bounds", promised),
        ("the budget of one request", parts),
        ("what was visited", visits.visited),
        ("what was not", visits.missed),
        *([] if report.coverage is None else [("does it hold?", report.coverage.rows())]),
    ):
        console.print(_table(title, rows))
    file = arguments.profile
    judged = "" if arguments.config is None else f" --config {arguments.config}"
    console.print(f"\nthe page: edgeguard report {file}{judged} -o {file.stem}.html")


def _table(title: str, rows: Any) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"\n{title}" if title else None, title_justify="left", title_style="bold",
                  show_header=False, box=None, pad_edge=False)  # fmt: skip
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, words in rows:
        table.add_row(Text(name), Text(words))
    return table
