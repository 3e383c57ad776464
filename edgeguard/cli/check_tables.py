"""The tables of ``edgeguard check``: the budget of a decision, and the stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from edgeguard.guard.stopping import StoppingDistance
from edgeguard.runtime.budget_line import BudgetLine

if TYPE_CHECKING:
    from rich.table import Table


def budget_table(budget: BudgetLine) -> Table:
    """Where the time of one decision goes, in milliseconds."""
    from rich.table import Table

    table = Table(title="budget of one decision", title_justify="left", box=None, pad_edge=True)
    table.add_column("part")
    table.add_column("ms", justify="right")
    table.add_row("age of the observation", f"{budget.age_ms:.1f}")
    table.add_row("on the wire", f"{budget.wire_ms:.1f}")
    table.add_row("reserve for the guard's lateness", f"{budget.reserve_ms:.1f}")
    if budget.bound_ms is None or budget.slack_ms is None:
        table.add_row("left for the model (give --profile to compare)", f"{budget.available_ms:.1f}", style="bold")
    else:
        table.add_row("the model, as bounded by calibration", f"{budget.bound_ms:.1f}")
        table.add_row("slack", f"{budget.slack_ms:.1f}", style="bold" if budget.slack_ms >= 0 else "bold red")
    table.add_section()
    table.add_row("deadline", f"{budget.deadline_ms:.1f}")
    return table


def stops_table(stops: Sequence[StoppingDistance], *, units: Mapping[str, str]) -> Table:
    """How far the robot travels in each of its stops, beside the clearance that it has; ``units`` are the axes'."""
    from rich.table import Table

    table = Table(title="stops from top speed", title_justify="left", box=None, pad_edge=True)
    for name in ("axis", "way"):
        table.add_column(name)
    for name in ("until it brakes, ms", "distance", "clearance"):
        table.add_column(name, justify="right")
    for stop in stops:
        unit = units[stop.axis]
        length = f" {unit.removesuffix('/s')}" if unit.endswith("/s") else ""  # of an axis that is a speed
        distance, clearance = f"{stop.distance:.2f}{length}", f"{stop.clearance:g}{length}"
        table.add_row(stop.axis, stop.way.rstrip(":"), f"{stop.reaction_s * 1e3:.0f}", distance, clearance)
    return table
