"""The prompt's part of ``edgeguard check``: what each field costs, and what would cost less."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from edgeguard.budget.profile import Profile
from edgeguard.config import Config

if TYPE_CHECKING:
    from rich.console import RenderableType

    from edgeguard.bench.speed.prompt_costs import FieldCost


def prompt_costs(config: Config, profile: Profile | None) -> list[FieldCost]:
    """Needs the model's tokenizer; builds the model if it has not been."""
    from edgeguard.bench.speed.prompt_costs import field_costs
    from edgeguard.bench.subject import model_folder
    from edgeguard.engine.model_parts import read_model_parts

    config = config.by_model[0]
    parts = read_model_parts(config=config, folder=model_folder(config))
    return field_costs(config, parts.prompt, cost=None if profile is None else profile.cost)


def prompt_summary(costs: list[FieldCost]) -> dict[str, Any]:
    from edgeguard.bench.speed.prompt_costs import advice

    return {"prompt": {"fields": [dataclasses.asdict(one) for one in costs], "advice": advice(costs)}}


def prompt_section(costs: list[FieldCost]) -> list[RenderableType]:
    from rich.table import Table

    from edgeguard.bench.speed.prompt_costs import advice

    table = Table(title="fields of the prompt", title_justify="left", box=None, pad_edge=True)
    table.add_column("field")
    for name in ("tokens", "at most", "ms"):
        table.add_column(name, justify="right")
    for one in costs:
        table.add_row(one.name, f"{one.tokens:.1f}", str(one.most_tokens), "–" if one.ms is None else f"{one.ms:.1f}")
    return [table, *(f"    {words}" for words in advice(costs))]
