"""``edgeguard compare``: what several models are worth beside one another, measured and in words."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.busy import look, say
from edgeguard.cli.compare_table import show_comparison
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
        show_comparison(rows, name=arguments.eval.name)
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
