"""``edgeguard compare``: what several models are worth beside one another, measured and in words."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.busy import look, say
from edgeguard.cli.files import picture_to_write
from edgeguard.cli.progress import progress_bars
from edgeguard.clock import SystemClock, ms_from_ns
from edgeguard.config import load_config
from edgeguard.errors import ConfigError

if TYPE_CHECKING:
    from edgeguard.bench.comparison.compare import Row
    from edgeguard.bench.comparison.contest import Contender
    from edgeguard.bench.comparison.evaluation import Case
    from edgeguard.bench.comparison.proportion import Share

_LABEL_COLUMNS, _COLUMNS = 36, 13
"""Of the table: for what a row is, and for each model with its intervals; a narrower terminal gets no intervals."""

_HELP = """\
Puts the cases of FILE to every MODEL, in turn and in a drawn order, each model in a worker process of its own as on the
robot, and says what each is worth: how many answers are right, how long they take, what memory they need, and whether
the difference from the first MODEL, the reference, is a good trade.

A MODEL is a recipe, perhaps in another kind of weights and with an adapter, or a model folder (with a /):

  smollm2-135m   smollm2-135m:q8   smollm2-135m:q4,head=q4   ./my-model
  smollm2-135m:q4-exact+./my-adapter
  smollm2-135m@few_shot.toml       answers with another configuration: the same answer schema, another prompt

Only what is named is compared: an adapter of the configuration counts for a MODEL that names it.

FILE is JSON Lines, a case a line: an observation, and for some fields of the answer what is right:

  {"observation": {"said": "left", "front_m": 1.4}, "accepted": {"move": ["left"]}}
  {"observation": {"said": "half speed"}, "accepted": {"speed": {"min": 0.2, "max": 0.3}}}

Compare on the machine that will run it, with nothing else computing; if something did, that is said at the end. 400
cases of five models take some minutes; --limit 50 takes a look.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``compare``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "compare",
        help="measure what models are worth beside one another: right answers, time, memory",
        description=_HELP,
    )
    parser.add_argument("models", nargs="+", metavar="MODEL", help="the first one is the reference")
    parser.add_argument("--eval", type=Path, required=True, metavar="FILE", help="the cases, as JSON Lines")
    parser.add_argument("--config", type=Path, metavar="CONFIG", help="prompt and answer schema (default: the demo's)")
    parser.add_argument("--tag", help="only the cases with this tag")
    parser.add_argument("--limit", type=int, metavar="N", help="only so many cases, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1, help="of the order and of --limit (default: 1)")
    parser.add_argument(
        "--plot", type=picture_to_write, metavar="PICTURE", help="draw it too (.png, .svg, .pdf; needs plots)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.comparison.compare import compare
    from edgeguard.bench.comparison.contest import run_contest
    from edgeguard.bench.comparison.likeness import read_paths
    from edgeguard.board import FixedKernel
    from edgeguard.model.inspect import inspect

    clock = SystemClock()
    kernel = FixedKernel(clock=clock)
    with progress_bars() as progress:
        contenders = _contenders(arguments, progress)
        cases = _cases(arguments, contenders)
        before = look(kernel)
        runs = run_contest(contenders, cases, seed=arguments.seed, clock=clock, progress=progress)
        busy = max(before, look(kernel))
        answers = [(one.case, one.values) for one in runs[0].outcomes if one.values is not None]
        paths = [read_paths(contender, answers, clock=clock, progress=progress) for contender in contenders]
    sizes = [
        inspect(contender.folder).bytes_with_head(own.head_rows)
        for contender, own in zip(contenders, paths, strict=True)
    ]
    rows = compare(runs, paths, bytes_per_pass=sizes, confidence=contenders[0].config.risk.confidence)
    if arguments.plot is not None:
        from edgeguard.bench.comparison.plot import draw

        draw(rows, title=f"{len(cases)} cases of {arguments.eval.name}", file=arguments.plot)
    if arguments.json:
        print(json.dumps(_summary(arguments, rows, busy=busy), indent=2))
    else:
        _show(rows, cases=cases, name=arguments.eval.name)
        say(busy)
    return 0


def _contenders(arguments: argparse.Namespace, progress: Any) -> list[Contender]:
    """Each MODEL with its configuration; all must give the same kind of answer."""
    from edgeguard.bench.comparison.contest import find_contender

    contenders = []
    for name in arguments.models:
        model, _, own = name.partition("@")
        config = load_config(Path(own) if own else arguments.config or _demo_config())
        contenders.append(find_contender(model, config=config, name=name, progress=progress))
    for contender in contenders[1:]:
        if contender.config.schema != contenders[0].config.schema:
            raise ConfigError(
                f"{contender.config.file}: its answer schema is not that of {contenders[0].config.file}: "
                "models are compared by answers of one kind"
            )
    return contenders


def _demo_config() -> Path:
    return Path(str(resources.files("edgeguard.demo").joinpath("demo.toml")))


def _cases(arguments: argparse.Namespace, contenders: Sequence[Contender]) -> tuple[Case, ...]:
    """Read for every configuration, for each may have other fields."""
    from edgeguard.bench.comparison.evaluation import draw_cases, read_evaluation

    cases, *_ = [read_evaluation(arguments.eval, config=contender.config) for contender in contenders]
    if arguments.limit is not None and arguments.limit < 1:
        raise ConfigError(f"--limit {arguments.limit}: at least one case is needed")
    tagged = [case for case in cases if arguments.tag is None or arguments.tag in case.tags]
    if not tagged:
        there = ", ".join(sorted({tag for case in cases for tag in case.tags})) or "none"
        raise ConfigError(f"{arguments.eval}: no case has the tag {arguments.tag!r}; there are {there}")
    return draw_cases(tagged, limit=arguments.limit, seed=arguments.seed)


def _summary(arguments: argparse.Namespace, rows: Sequence[Row], *, busy: float) -> dict[str, Any]:
    return {
        "eval": str(arguments.eval),
        "cases": rows[0].exact.n,
        "seed": arguments.seed,
        "busy": round(busy, 2),
        "models": [_plain(row) for row in rows],
    }


def _plain(row: Row) -> dict[str, Any]:
    against, bound, belief = row.against, row.bound, row.reliability
    return {
        "name": row.name,
        "exact": _share(row.exact),
        "fields": {name: _share(share) for name, share in row.fields.items()},
        "tags": {
            tag.tag: {"exact": _share(tag.exact), "fields": {name: _share(one) for name, one in tag.fields.items()}}
            for tag in row.tags
        },
        "median_ms": round(ms_from_ns(row.median_ns), 2),
        "bound": bound
        and {
            "percentile": bound.percentile,
            "bound_ms": round(ms_from_ns(bound.bound_ns), 2),
            "effective_n": bound.effective_n,
        },
        "bytes_per_pass": row.bytes_per_pass,
        "resident_bytes": row.resident_bytes,
        "prefix_tokens": row.prefix_tokens,
        "against_reference": against
        and {
            "agreement": _share(against.agreement),
            "divergence_nats": against.divergence,
            "times_faster": round(against.times_faster, 3),
            "times_interval": [round(one, 3) for one in against.times_interval],
            "difference": against.paired.difference,
            "half_width": against.paired.half_width,
            "gained": against.paired.gained,
            "lost": against.paired.lost,
            "p_value": against.paired.p_value,
        },
        "confidence": belief
        and {
            "gap": belief.gap,
            "groups": [{"stated": group.stated, "right": _share(group.right)} for group in belief.groups],
            "thresholds": [
                {"confidence": one.confidence, "kept": _share(one.kept), "right": _share(one.right)}
                for one in belief.thresholds
            ],
        },
        "verdict": row.verdict,
    }


def _share(share: Share) -> dict[str, Any]:
    low, high = share.interval
    return {"hits": share.hits, "n": share.n, "share": share.value if share.n else None, "low": low, "high": high}


def _show(rows: Sequence[Row], *, cases: Sequence[Case], name: str) -> None:
    from rich.table import Table

    from edgeguard.cli.console import Console

    console = Console()
    wide = _LABEL_COLUMNS + _COLUMNS * len(rows)
    brief = console.is_terminal and console.width < wide
    if not brief:
        console.width = max(console.width, wide)
    console.print(
        f"[bold]{len(cases)} cases[/] of {name}; right answers in %{'' if brief else ', with their 95 % interval'}\n"
    )
    key = Table.grid(padding=(0, 2))
    for number, row in enumerate(rows, start=1):
        key.add_row(f"[bold]{number}[/]", row.name)
        key.add_row("", row.verdict)
    console.print(key)
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("cases", justify="right", style="dim")
    for number in range(1, len(rows) + 1):
        table.add_column(f"[bold]{number}[/]", justify="right", no_wrap=True)
    for line in (*_right(rows, brief=brief), *_worth(rows), *_by_tag(rows, brief=brief)):
        table.add_row(*line)
    console.print(table)


def _right(rows: Sequence[Row], *, brief: bool) -> Iterator[list[str]]:
    yield ["exactly right", str(rows[0].exact.n), *(_percent(row.exact, brief=brief) for row in rows)]
    for name, share in rows[0].fields.items():
        yield [f"  {name}", str(share.n), *(_percent(row.fields[name], brief=brief) for row in rows)]


def _worth(rows: Sequence[Row]) -> Iterator[list[str]]:
    others = [row.against for row in rows]
    yield ["same answer as 1, %", "", *("" if one is None else f"{one.agreement.value * 100:.0f}" for one in others)]
    divergences = [None if one is None else one.divergence for one in others]
    yield ["divergence from 1, nats", "", *("" if one is None else f"{one:.3f}" for one in divergences)]
    yield ["time to command, ms", "", *(f"{ms_from_ns(row.median_ns):.1f}" for row in rows)]
    yield ["  at most", "", *(_bound(row) for row in rows)]
    yield ["MB read by a pass", "", *(f"{row.bytes_per_pass / 1e6:.0f}" for row in rows)]
    yield ["MB of the worker", "", *(f"{row.resident_bytes / 1e6:.0f}" for row in rows)]
    yield ["tokens of the prefix", "", *(str(row.prefix_tokens) for row in rows)]
    beliefs = [row.reliability for row in rows]
    yield ["stated confidence off by, %", "", *("" if one is None else f"{one.gap * 100:.0f}" for one in beliefs)]


def _by_tag(rows: Sequence[Row], *, brief: bool) -> Iterator[list[str]]:
    for at, tag in enumerate(rows[0].tags):
        yield [f"tag {tag.tag}", str(tag.exact.n), *(_percent(row.tags[at].exact, brief=brief) for row in rows)]


def _bound(row: Row) -> str:
    return "" if row.bound is None else f"[dim]p{row.bound.percentile * 100:g}[/] {ms_from_ns(row.bound.bound_ns):.0f}"


def _percent(share: Share, *, brief: bool) -> str:
    low, high = share.interval
    interval = "" if brief else f" [dim]{low * 100:.0f}–{high * 100:.0f}[/]"
    return f"{share.value * 100:.1f}{interval}"
