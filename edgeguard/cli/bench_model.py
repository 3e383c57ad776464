"""``edgeguard bench MODEL``: rates in llama-bench's table, and beside them what the roofline says."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from edgeguard.cli.bench_table import at_best_s, show
from edgeguard.cli.busy import look, say
from edgeguard.cli.positive import require_positive
from edgeguard.cli.progress import progress_bars
from edgeguard.clock import NS_PER_S, SystemClock, wall_time_iso
from edgeguard.errors import ConfigError

if TYPE_CHECKING:
    from edgeguard.bench.speed.rates import Task


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.speed.machine import measure_machine
    from edgeguard.bench.speed.model_figures import find_model, model_figures
    from edgeguard.bench.speed.rate_rows import rate_row
    from edgeguard.bench.speed.rates import measure_rates
    from edgeguard.board import FixedKernel, read_fingerprint
    from edgeguard.engine.session import allowed_threads

    require_positive(arguments, "repetitions")
    if arguments.threads < 0:
        raise ConfigError(f"--threads {arguments.threads}: must not be below 0")
    tasks = _tasks(arguments)
    clock, began = SystemClock(), wall_time_iso()
    kernel = FixedKernel(clock=clock)
    with progress_bars() as progress:
        folder = find_model(arguments.folder, progress=progress)
        summary, figures = model_figures(folder)
        factors = [look(kernel)]
        rates = measure_rates(
            folder,
            tasks,
            repetitions=arguments.repetitions,
            clock=clock,
            threads=arguments.threads,
            provider=arguments.provider,
            progress=progress,
        )
        factors.append(look(kernel))
        machine = None
        if arguments.measure:
            machine = measure_machine(clock=clock, accuracy_level=summary.accuracy_level, progress=progress)
    fingerprint, threads = read_fingerprint(), allowed_threads(arguments.threads)
    rows = [
        rate_row(
            rate,
            summary=summary,
            figures=figures,
            fingerprint=fingerprint,
            provider=arguments.provider,
            threads=threads,
            busy=max(factors),
            time=began,
        )
        for rate in rates
    ]
    if machine is not None:
        for row, rate in zip(rows, rates, strict=True):
            row["latency_at_best_ns"] = round(at_best_s(figures, machine, rate.task) * NS_PER_S)
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return 0
    show(rows, rates, figures, machine)
    say(max(factors))
    return 0


def _tasks(arguments: argparse.Namespace) -> list[Task]:
    from edgeguard.bench.speed.rates import Task

    tasks = [
        task
        for depth in arguments.n_depth
        for task in (
            *(Task(n_prompt=size, n_depth=depth) for size in arguments.n_prompt if size),
            *(Task(n_gen=size, n_depth=depth) for size in arguments.n_gen if size),
        )
    ]
    if not tasks:
        raise ConfigError("-p and -n are both 0: there is nothing to measure")
    return tasks
