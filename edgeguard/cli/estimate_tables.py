"""How an estimate is shown: what was given, the times, where they go, what helps, and the rates of other batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeguard.budget import roofline
from edgeguard.budget.roofline import Estimate, Machine, Model, Work
from edgeguard.cli.quantity import digits, scaled, seconds

if TYPE_CHECKING:
    from rich.table import Table

BATCHES = (1, 8, 32, 64)
BITS = (16, 8, 4)


def rates(model: Model, machine: Machine, work: Work) -> dict[str, dict[str, float]]:
    """Tokens/s by bits and batch, each request's cache read with it."""
    cache_bytes = work.cache_bytes
    if cache_bytes is None:
        cache_bytes = model.kv_bytes_per_token * (work.cached + work.prompt)
    return {
        f"{bits:.3g}": {
            str(batch): roofline.tokens_per_s(model.at_bits(bits), machine, batch=batch, cache_bytes=cache_bytes)
            for batch in sorted({*BATCHES, work.batch})
        }
        for bits in sorted({*BITS, model.bits}, reverse=True)
    }


def show(model: Model, machine: Machine, work: Work, found: Estimate) -> None:
    """Print all of it."""
    from edgeguard.cli.console import Console

    console = Console()
    for table in (
        _given(model, machine, work),
        _times(model, machine, work, found),
        share_table(found),
        remedy_table(found),
        _rate_table(model, machine, work),
    ):
        console.print(table)
        console.print()


def _facts() -> Table:
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    return table


def _given(model: Model, machine: Machine, work: Work) -> Table:
    table = _facts()
    table.add_row(
        "model",
        f"{roofline.billions(model.parameters)} parameters at {model.bits:.3g} bits: "
        f"every pass reads {scaled(model.weight_bytes, 'B')}",
    )
    share = f" ({machine.utilisation:.0%} of {scaled(machine.flops, 'FLOP/s')})" if machine.utilisation < 1 else ""
    table.add_row(
        "machine", f"{scaled(machine.useful_flops, 'FLOP/s')}{share}, {scaled(machine.bandwidth, 'B/s')} of memory"
    )
    behind = f" behind {work.cached:,} cached" if work.cached else ""
    alike = f", {work.batch} at once" if work.batch > 1 else ""
    table.add_row("request", f"{work.prompt:,} new tokens{behind}, then {work.output:,} tokens of answer{alike}")
    return table


def _times(model: Model, machine: Machine, work: Work, found: Estimate) -> Table:
    table = _facts()
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    arithmetic = 2 * model.parameters * work.prompt / machine.useful_flops >= found.first_token_s
    short = "P·b / W: so short a prompt costs one reading of the weights"
    table.add_row("first token", seconds(found.first_token_s), "2·P·n / (F·u)" if arithmetic else short)
    compute = work.batch >= found.balanced_batch
    table.add_row("step", seconds(found.step_s), "2·P·B / (F·u)" if compute else "(P·b + caches) / W")
    table.add_row("request", seconds(found.service_s), f"the first token and {max(0, work.output - 1)} steps")
    if work.load:
        table.add_row("in the queue too", seconds(found.total_s), f"÷ (1 − ρ), at a load of {work.load:g}")
    table.add_row("tokens/s", digits(found.tokens_per_s), "batch / step")
    table.add_row("B*", digits(found.balanced_batch), "F·u·b / (2·W): with more at once, arithmetic is the limit")
    if found.cache_bytes:
        each = f"{work.batch} × " if work.batch > 1 else ""
        what = f"{work.cached + work.prompt:,} tokens of {scaled(model.kv_bytes_per_token, 'B')}"
        given = scaled(work.cache_bytes or 0.0, "B")
        table.add_row("KV cache", scaled(found.cache_bytes, "B"), each + (what if work.cache_bytes is None else given))
    return table


def share_table(found: Estimate) -> Table:
    """Where the time goes, the bottleneck first."""
    from rich.table import Table

    table = Table("where it goes", box=None, pad_edge=False)
    table.add_column("time", justify="right")
    table.add_column("share", justify="right")
    for part, value_s in sorted(found.parts.items(), key=lambda item: -item[1]):
        if value_s > 0:
            mark = "bold" if part is found.bottleneck else ""
            table.add_row(part.value, seconds(value_s), f"{value_s / found.total_s:.0%}", style=mark)
    return table


def remedy_table(found: Estimate) -> Table:
    """What would help, best first."""
    from rich.table import Table

    table = Table("what helps, best first", box=None, pad_edge=False)
    table.add_column("request", justify="right")
    table.add_column("saved", justify="right")
    for remedy in found.remedies:
        table.add_row(remedy.words, seconds(remedy.total_s), f"{remedy.saved_s / found.total_s:.0%}")
    return table


def _rate_table(model: Model, machine: Machine, work: Work) -> Table:
    from rich.table import Table

    by_bits = rates(model, machine, work)
    table = Table("by bits and batch, tokens/s", box=None, pad_edge=False)
    for batch in next(iter(by_bits.values())):
        table.add_column(f"batch {batch}", justify="right")
    for bits, row in by_bits.items():
        table.add_row(f"{bits} bits", *(f"{rate:,.0f}" for rate in row.values()))
    return table
