"""The part of ``edgeguard check`` that needs the model: what each field of the prompt costs, what would cost less, and
what the models take of the memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.budget.profile import Profile
from edgeguard.cli.quantity import scaled
from edgeguard.config import Config

if TYPE_CHECKING:
    from rich.console import RenderableType

    from edgeguard.bench.memory import ModelMemory
    from edgeguard.bench.speed.prompt_costs import FieldCost


def memory(config: Config) -> tuple[ModelMemory, ...]:
    from edgeguard.bench.memory import memory_of

    return memory_of(config)


def memory_lines(models: Sequence[ModelMemory]) -> list[str]:
    """One for each model: its weights, and the KV cache of each plan that asks it."""
    return [
        f"memory: {Path(one.model).name}: {scaled(one.weight_bytes, 'B')} of weights, and KV caches of "
        + ", ".join(f"{scaled(size, 'B')}{f' (plan {name})' if name else ''}" for name, size in one.cache_bytes.items())
        for one in models
    ]


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
