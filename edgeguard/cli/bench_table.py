"""How rates are shown: llama-bench's table, what is waited for beside what is possible, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from edgeguard.budget import roofline
from edgeguard.budget.roofline import Machine, Model, Work
from edgeguard.cli.estimate_tables import remedy_table, share_table
from edgeguard.cli.quantity import digits, scaled, seconds
from edgeguard.clock import NS_PER_S

if TYPE_CHECKING:
    from rich.table import Table

    from edgeguard.bench.speed.rates import Rate, Task

_LEFT = ("model", "backend")


def show(rows: Sequence[Mapping[str, Any]], rates: Sequence[Rate], figures: Model, machine: Machine | None) -> None:
    """Print all of it; ``machine`` is what was measured of this one, if anything was."""
    from edgeguard.cli.console import Console

    print(markdown(rows, rates))
    console = Console()
    console.print()
    console.print(_waiting(rates, figures, machine))
    if machine is not None:
        possible = f"{scaled(machine.useful_flops, 'FLOP/s')} and {scaled(machine.bandwidth, 'B/s')}"
        console.print(f"\nat best: by the roofline, from {possible} as measured here")
    pairs = [(prompt, steps) for prompt in rates for steps in rates if _belong_together(prompt.task, steps.task)]
    if pairs:
        _explain(console, figures, *pairs[0])


def markdown(rows: Sequence[Mapping[str, Any]], rates: Sequence[Rate]) -> str:
    """llama-bench's own table, to be pasted beside its rows."""
    table = [
        {
            "model": row["model_type"],
            "size": _binary(row["model_size"]),
            "params": roofline.billions(row["model_n_params"]),
            "backend": row["backends"],
            "threads": str(row["n_threads"]),
            "test": rate.task.name,
            "t/s": f"{row['avg_ts']:.2f} ± {row['stddev_ts']:.2f}",
        }
        for row, rate in zip(rows, rates, strict=True)
    ]
    widths = {name: max(len(name), *(len(row[name]) for row in table)) for name in table[0]}
    rule = {name: "-" * width if name in _LEFT else "-" * (width - 1) + ":" for name, width in widths.items()}
    lines = [dict(zip(widths, widths, strict=True)), rule, *table]
    return "\n".join(
        "| " + " | ".join(_justified(line[name], widths[name], name) for name in widths) + " |" for line in lines
    )


def at_best_s(figures: Model, machine: Machine, task: Task) -> float:
    """What the roofline says of the test: the whole prompt, or one step in the middle of the generation."""
    if task.n_prompt:
        return roofline.first_token_s(figures, machine, prompt=task.n_prompt)
    context = task.n_depth + task.n_gen / 2
    return roofline.step_s(figures, machine, cache_bytes=context * figures.kv_bytes_per_token)


def _waiting(rates: Sequence[Rate], figures: Model, machine: Machine | None) -> Table:
    from rich.table import Table

    from edgeguard.bench.percentile import percentile

    table = Table("test", "what is waited for", box=None, pad_edge=False)
    for name in ("p50", "p95", "p99", *(("at best", "p50 ÷ at best") if machine is not None else ())):
        table.add_column(name, justify="right")
    for rate in rates:
        waits_s = [percentile(rate.latencies_ns, share) / NS_PER_S for share in (0.5, 0.95, 0.99)]
        cells = [seconds(one) for one in waits_s]
        if machine is not None:
            best_s = at_best_s(figures, machine, rate.task)
            cells += [seconds(best_s), digits(waits_s[0] / best_s)]
        table.add_row(rate.task.name, "one token" if rate.task.n_gen else "the whole prompt", *cells)
    return table


def _belong_together(prompt: Task, steps: Task) -> bool:
    return prompt.n_prompt > 0 and steps.n_gen > 0 and prompt.n_depth == steps.n_depth


def _explain(console: Any, figures: Model, prompt: Rate, steps: Rate) -> None:
    """Where a request of these two tests goes, at the rates that were measured."""
    task, count = prompt.task, steps.task.n_gen
    machine = roofline.effective_machine(
        figures,
        prompt=task.n_prompt,
        prompt_s=prompt.avg_ns / NS_PER_S,
        step_s=steps.avg_ns / count / NS_PER_S,
        context=task.n_depth + count / 2,
    )
    found = roofline.estimate(figures, machine, Work(prompt=task.n_prompt, output=count, cached=task.n_depth))
    console.print(
        f"\na request of {task.n_prompt} tokens and {count} of answer at these rates: {seconds(found.total_s)}; "
        f"the bottleneck is {found.bottleneck.value}\n"
    )
    console.print(share_table(found))
    console.print()
    console.print(remedy_table(found))


def _binary(size: int) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.2f} MiB"


def _justified(cell: str, width: int, name: str) -> str:
    return cell.ljust(width) if name in _LEFT else cell.rjust(width)
