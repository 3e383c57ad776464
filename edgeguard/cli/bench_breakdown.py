"""``edgeguard bench --breakdown CONFIG``: where a request's milliseconds go, as a table with bars."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.positive import require_positive
from edgeguard.cli.progress import progress_bars
from edgeguard.cli.quantity import scaled
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.config import load_config

if TYPE_CHECKING:
    from rich.table import Table

    from edgeguard.bench.memory import WorkerMemory
    from edgeguard.bench.speed.breakdown import Breakdown, Stream
    from edgeguard.bench.speed.limits import Limits

KERNEL_NS = 300 * NS_PER_MS
BUSY_LIMIT = 1.2
BAR_WIDTH = 40
MOST_STEPS = 3
BESIDE = {"carry": "what makes 4-bit weights exact", "adapter": "the adapter beside them"}
"""What stands beside the products (``carry_share``), in words."""


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.speed.breakdown import break_down
    from edgeguard.board import FixedKernel

    require_positive(arguments, "requests")
    config, clock = load_config(Path(arguments.breakdown)), SystemClock()
    kernel = FixedKernel(clock=clock)
    profile = None if arguments.profile is None else Path(arguments.profile).absolute()
    with progress_bars() as progress:
        factors = [kernel.busy_factor(for_ns=KERNEL_NS)]
        found = break_down(config, clock=clock, requests=arguments.requests, profile=profile, progress=progress)
        factors.append(kernel.busy_factor(for_ns=KERNEL_NS))
    if arguments.json:
        print(json.dumps({**_summary(found), "busy": max(factors)}, indent=2))
        return 0
    _show(found)
    if max(factors) > BUSY_LIMIT:
        print(f"\nmachine busy ×{max(factors):.1f}: something else computes here, and the times are longer for it")
    return 0


def _summary(found: Breakdown) -> dict[str, Any]:
    from edgeguard.bench.speed.pass_steps import find_steps

    return {
        "streams": {
            name: {**dataclasses.asdict(stream), "beside_ms": stream.beside_ms}
            for name, stream in found.streams.items()
        },
        "limits": {
            **dataclasses.asdict(found.limits),
            "per_token_ms": found.limits.per_token_ms,
            "per_pass_ms": found.limits.per_pass_ms,
            "of_bandwidth": found.limits.of_bandwidth,
            "of_flops": found.limits.of_flops,
        },
        "wake_ups": dataclasses.asdict(found.wake_ups),
        "passes_ms": found.passes_ms,
        "steps": [{**dataclasses.asdict(step), "saved": step.saved} for step in find_steps(found.passes_ms)],
        **{name: found.beside.get(name, {}) for name in BESIDE},
        "memory": {**dataclasses.asdict(found.memory), "of_model": found.memory.of_model},
    }


def _show(found: Breakdown) -> None:
    from edgeguard.cli.console import Console

    console = Console()
    for name, stream in found.streams.items():
        console.print(_parts_table(name, stream))
        console.print(
            f"    {stream.passes:.2f} passes a request, {stream.one_pass:.0%} of them in one; {stream.accepted:.0%} of "
            f"the drafted tokens right; p99 {stream.total_p99_ms:.1f} ms, of the hand-over {stream.handover_p99_ms:.2f}"
            f" ms\n    floor, one pass of observation and draft, after a rest as a request's: {stream.floor_ms:.1f} ms "
            f"(back to back {stream.floor_unrested_ms:.1f}); a request took ×{stream.over_floor:.2f} of its own\n"
        )
    console.print(
        f"floor of a hand-over here, two processes that wake each other and no more: {found.wake_ups.p50_ms:.2f} ms, "
        f"p99 {found.wake_ups.p99_ms:.2f} ms"
    )
    console.print(_limit_lines(found.limits))
    for name, shares in found.beside.items():
        console.print(_share_line(BESIDE[name], shares))
    console.print(_steps_line(found.passes_ms))
    console.print(_memory_line(found.memory))


def _parts_table(name: str, stream: Stream) -> Table:
    from rich.table import Table

    table = Table(title=f"{name} observations, {stream.requests} requests: median ms", title_justify="left", box=None)
    table.add_column("part")
    table.add_column("ms", justify="right")
    table.add_column("")
    longest = max(stream.parts_ms.values())
    for part, part_ms in stream.parts_ms.items():
        table.add_row(part, f"{part_ms:.3f}", "█" * round(BAR_WIDTH * part_ms / longest) or "▏")
    table.add_section()
    table.add_row("all but the passes", f"{stream.beside_ms:.3f}", "")
    table.add_row("time to command", f"{stream.total_ms:.3f}", "", style="bold")
    return table


def _limit_lines(limits: Limits) -> str:
    moved, reached = scaled(limits.bytes_moved, "B"), scaled(limits.bytes_moved / limits.small_ms * 1e3, "B/s")
    flop = scaled(limits.flop / limits.large_ms * 1e3, "FLOP/s")
    lines = [
        f"a pass of {limits.small_tokens} tokens, {limits.small_ms:.1f} ms, reads {moved}: {reached}, "
        f"{limits.of_bandwidth:.0%} of the {scaled(limits.bandwidth, 'B/s')} that reading memory reaches here",
        f"a pass of {limits.large_tokens} tokens, {limits.large_ms:.1f} ms: {flop}, {limits.of_flops:.0%} of the "
        f"{scaled(limits.flops, 'FLOP/s')} that the best matrix product reaches here",
        f"a pass costs {limits.per_pass_ms:.1f} ms and {limits.per_token_ms:.2f} ms a token; reading it all at full "
        f"bandwidth would take {limits.bytes_moved / limits.bandwidth * 1e3:.1f} ms, so the rest of it is not memory",
    ]
    if limits.large_products_ms:
        lines.append(
            f"the model's own products alone, matrix by matrix, take {limits.small_products_ms:.1f} and "
            f"{limits.large_products_ms:.1f} ms of the two passes: the kernels reach no more at these sizes; the rest "
            "is attention, norms, what stands beside the products, and reading the weights"
        )
    return "\n".join(lines)


def _share_line(what: str, shares: Mapping[int, float]) -> str:
    listed = ", ".join(f"{share:.1%} of a pass of {tokens}" for tokens, share in shares.items())
    return f"{what}: {listed} tokens (passes with it and without, by turns)"


def _steps_line(passes_ms: Mapping[int, float]) -> str:
    from edgeguard.bench.speed.pass_steps import WORTH, find_steps

    sizes = f"of {min(passes_ms)} to {max(passes_ms)} tokens"
    steps = find_steps(passes_ms)
    if not steps:
        return f"no pass {sizes} is more than {WORTH:.0%} dearer than a longer one, or than two with its tokens"
    dearer = (
        f"{step.tokens} ({step.ms:.1f} ms) than {' and '.join(map(str, step.instead))} ({step.instead_ms:.1f} ms)"
        for step in steps[:MOST_STEPS]
    )
    return (
        f"{len(steps)} of {len(passes_ms)} passes {sizes} are dearer than they need be: {'; '.join(dearer)}. Passes "
        "are filled up to fixed sizes where [model] shapes says so"
    )


def _memory_line(memory: WorkerMemory) -> str:
    resident, own = scaled(memory.resident_bytes, "B"), scaled(memory.own_bytes, "B")
    model = scaled(memory.model_bytes, "B")
    return f"the worker has {resident} in memory, {own} of it its own: ×{memory.of_model:.2f} of a model of {model}"
