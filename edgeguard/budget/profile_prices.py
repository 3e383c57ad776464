"""Sweep and prices in a profile's file: what passes took, and the cost that was fitted to it, of each model.

The rows of the sweep have ``llama-bench``'s names (``n_prompt`` new tokens, or ``n_gen`` for the smallest pass, which
decodes one more; at ``n_depth`` cached ones, ``samples_ns``, ``avg_ts`` tokens per second), so that its pp and tg rows
can be joined. Durations are nanoseconds. What cannot be used is noted in the table that it was read from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeguard.budget.cost import OtherModel, PassCost, PassTimes
from edgeguard.budget.profile_columns import MOST, is_number, named_values, read_integers
from edgeguard.config.reader import Table

_DECODE_SIZE = 2
"""A decode step: one token, or two where a provider's passes of one token have other bits."""


def sweep_row(row: PassTimes) -> dict[str, Any]:
    """One size at one depth. What ``llama-bench`` calls it is for whoever joins rows, and is not read back."""
    prompt, generated = (0, 1) if row.k <= _DECODE_SIZE else (row.k, 0)
    seconds = row.median_ns / 1e9 if row.elapsed_ns else 0.0
    return {
        "k": row.k,
        "n_prompt": prompt,
        "n_gen": generated,
        "n_depth": row.p,
        "avg_ts": round((prompt + generated) / seconds, 3) if seconds else 0.0,
        "samples_ns": list(row.elapsed_ns),
    }


def other_model(one: OtherModel) -> dict[str, Any]:
    """The prices of another model of the ladder."""
    return {"rungs": list(one.rungs), "cost": named_values(one.cost), "sweep": [sweep_row(row) for row in one.sweep]}


def read_other(table: Table) -> OtherModel:
    """What ``other_model`` wrote."""
    other = OtherModel(
        rungs=table.texts("rungs"),
        cost=read_cost(table.table("cost")),
        sweep=tuple(read_pass_times(row) for row in table.tables("sweep")),
    )
    table.close()
    return other


def read_cost(table: Table) -> PassCost:
    """The fitted cost of a pass; the same names as its parts."""
    sizes = read_integers(table, "sizes", low=1)
    prices = table.raw("prices_ns", kind=list, name="a list of numbers")
    prices_ns = tuple(float(price) for price in prices if is_number(price))
    if len(prices_ns) != len(prices) or any(price <= 0 for price in prices_ns) or list(prices_ns) != sorted(prices_ns):
        table.refuse("prices_ns", f"{_short(prices)} must be positive numbers that never fall")
    if not sizes or list(sizes) != sorted(set(sizes)):
        table.refuse("sizes", f"{_short(sizes)} must be at least one size, and rise")
    if len(sizes) != len(prices):
        table.refuse("prices_ns", f"{len(prices)} prices for {len(sizes)} sizes")
    cost = PassCost(
        sizes=sizes,
        prices_ns=prices_ns,
        p_reference=table.integer("p_reference", low=0, high=MOST),
        per_cached_ns=table.number("per_cached_ns", low=0),
        constant_ns=table.integer("constant_ns", low=0, high=MOST),
        stepped=table.flag("stepped", default=False),
    )
    table.close()
    return cost


def read_pass_times(table: Table) -> PassTimes:
    """What ``sweep_row`` wrote."""
    times = PassTimes(
        k=table.integer("k", low=1, high=MOST),
        p=table.integer("n_depth", low=0, high=MOST),
        elapsed_ns=read_integers(table, "samples_ns", low=1),
    )
    table.integer("n_prompt", low=0, high=MOST)
    table.integer("n_gen", low=0, high=MOST)
    table.number("avg_ts", low=0)
    table.close()
    return times


def _short(values: Sequence[object]) -> str:
    text = ", ".join(map(str, values[:8]))
    return f"[{text}, …]" if len(values) > 8 else f"[{text}]"
