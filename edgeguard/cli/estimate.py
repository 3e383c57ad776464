"""``edgeguard estimate``: what a model can do at best on a machine, by the roofline."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from edgeguard.budget import roofline
from edgeguard.budget.roofline import Estimate, Machine, Model, Work
from edgeguard.cli.estimate_tables import rates, show
from edgeguard.cli.progress import progress_bars
from edgeguard.clock import SystemClock
from edgeguard.errors import ConfigError

_HELP = """\
Says what a request takes at best, where that time goes, and what would help most, from five figures: the model's
parameters P and bits per weight, the machine's FLOP/s F (of which the share u is really reached) and its memory's
bytes/s W. A pass of n tokens takes the longer of 2·P·n / (F·u), its arithmetic, and P·b / W, reading every weight.

  edgeguard estimate --parameters 7e9 --bits 16 --flops 1e14 --utilisation 0.4 --bandwidth 1e12 --prompt 1000
  edgeguard estimate smollm2-135m --measure --prompt 26 --cached 149 --output 20

MODEL is a model folder (with a /) or a recipe, as for 'edgeguard model build'. --measure times a matrix product and
reading memory on this machine, a few seconds. 'edgeguard bench MODEL --measure' puts the measured rates beside.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``estimate``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "estimate",
        help="what a model can do at best on a machine, and what would help most",
        description=_HELP,
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="take the model's figures from it")
    model = parser.add_argument_group("the model, where no MODEL is named")
    model.add_argument("--parameters", type=float, metavar="P", help="such as 7e9")
    model.add_argument("--bits", type=float, default=16, metavar="N", help="per weight (default: 16)")
    model.add_argument("--kv-bytes", type=float, metavar="BYTES", help="cache per token; or from the next four:")
    model.add_argument("--layers", type=int, metavar="L")
    model.add_argument("--kv-heads", type=int, metavar="H", help="of keys and values: fewer with grouped queries")
    model.add_argument("--head-size", type=int, metavar="D")
    model.add_argument("--cache-bits", type=float, default=16, metavar="N", help="per element (default: 16)")
    machine = parser.add_argument_group("the machine")
    machine.add_argument("--measure", action="store_true", help="measure F and W here; u is then 1")
    machine.add_argument("--flops", type=float, metavar="F", help="FLOP/s, such as 1e14")
    machine.add_argument(
        "--utilisation", type=float, default=0.4, metavar="U", help="of F; of a printed peak about 0.4 (the default)"
    )
    machine.add_argument("--bandwidth", type=float, metavar="W", help="of the memory, bytes/s, such as 1e12")
    work = parser.add_argument_group("the request")
    work.add_argument("--prompt", type=int, default=256, metavar="N", help="new tokens of the prompt (default: 256)")
    work.add_argument("--cached", type=int, default=0, metavar="N", help="tokens before them that are cached")
    work.add_argument("--output", type=int, default=20, metavar="N", help="tokens of the answer (default: 20)")
    work.add_argument("--batch", type=int, default=1, metavar="B", help="so many such requests at once")
    work.add_argument("--cache-bytes", type=float, metavar="BYTES", help="of each request, instead of counting tokens")
    work.add_argument("--load", type=float, default=0.0, metavar="RHO", help="of a shared endpoint, 0 to 1")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    problems = list(_problems(arguments))
    if problems:
        raise ConfigError(problems)
    with progress_bars() as progress:
        model, accuracy_level = _model(arguments, progress)
        machine = _machine(arguments, accuracy_level, progress)
    work = Work(
        prompt=arguments.prompt,
        output=arguments.output,
        cached=arguments.cached,
        batch=arguments.batch,
        cache_bytes=arguments.cache_bytes,
        load=arguments.load,
    )
    found = roofline.estimate(model, machine, work)
    if arguments.json:
        print(json.dumps(_summary(model, machine, work, found), indent=2))
    else:
        show(model, machine, work, found)
    return 0


def _problems(arguments: argparse.Namespace) -> list[str]:
    """Everything that is missing or cannot be, not only the first."""
    problems = []
    if (arguments.model is None) == (arguments.parameters is None):
        problems.append("the model is a MODEL or --parameters, one of the two")
    if arguments.measure and (arguments.flops or arguments.bandwidth):
        problems.append("--measure finds --flops and --bandwidth: name them or let them be measured")
    if not arguments.measure and (arguments.flops is None or arguments.bandwidth is None):
        problems.append("the machine is --flops and --bandwidth, or --measure")
    positive = ("parameters", "bits", "kv_bytes", "layers", "kv_heads", "head_size", "cache_bits", "flops")
    for name in (*positive, "utilisation", "bandwidth", "prompt", "output", "batch", "cache_bytes"):
        value = getattr(arguments, name)
        if value is not None and not 0 < value < float("inf"):
            problems.append(f"--{name.replace('_', '-')} {value:g}: must be above 0")
    if arguments.utilisation > 1:
        problems.append(f"--utilisation {arguments.utilisation:g}: is a share, at most 1")
    if arguments.cached < 0:
        problems.append(f"--cached {arguments.cached}: must not be below 0")
    if not 0 <= arguments.load < 1:
        problems.append(f"--load {arguments.load:g}: must be from 0 to below 1; at 1 the queue grows without end")
    shape = [arguments.layers, arguments.kv_heads, arguments.head_size]
    if any(shape) and not all(shape):
        problems.append("--layers, --kv-heads and --head-size belong together")
    return problems


def _model(arguments: argparse.Namespace, progress: Any) -> tuple[Model, int | None]:
    """The model, and the accuracy level of its kernels if a named one is quantised."""
    if arguments.model is not None:
        from edgeguard.bench.speed.model_figures import find_model, model_figures

        summary, figures = model_figures(find_model(arguments.model, progress=progress))
        return figures, summary.accuracy_level
    kv_bytes = arguments.kv_bytes or 0.0
    if arguments.layers:
        kv_bytes = roofline.kv_bytes(
            layers=arguments.layers,
            kv_heads=arguments.kv_heads,
            head_size=arguments.head_size,
            bytes_per_element=arguments.cache_bits / 8,
        )
    weight_bytes = arguments.parameters * arguments.bits / 8
    return Model(parameters=arguments.parameters, weight_bytes=weight_bytes, kv_bytes_per_token=kv_bytes), None


def _machine(arguments: argparse.Namespace, accuracy_level: int | None, progress: Any) -> Machine:
    if arguments.measure:
        from edgeguard.bench.speed.machine import measure_machine

        return measure_machine(clock=SystemClock(), accuracy_level=accuracy_level, progress=progress)
    return Machine(flops=arguments.flops, bandwidth=arguments.bandwidth, utilisation=arguments.utilisation)


def _summary(model: Model, machine: Machine, work: Work, found: Estimate) -> dict[str, Any]:
    return {
        "model": asdict(model),
        "machine": asdict(machine),
        "request": asdict(work),
        **asdict(found),
        "parts": {part.value: value_s for part, value_s in found.parts.items()},
        "bottleneck": found.bottleneck.value,
        "tokens_per_s_by_bits_and_batch": rates(model, machine, work),
    }
