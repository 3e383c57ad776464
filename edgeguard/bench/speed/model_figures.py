"""A model folder's figures for the roofline."""

from __future__ import annotations

from pathlib import Path

from edgeguard.budget.roofline import Model
from edgeguard.model.build import build
from edgeguard.model.inspect import ModelSummary, inspect
from edgeguard.model.progress import Progress, silent
from edgeguard.model.variant import find_variant, names_folder


def model_figures(folder: Path) -> tuple[ModelSummary, Model]:
    """What is inside, and what of it the roofline counts: an embedding alone is looked up, not multiplied."""
    summary = inspect(folder)
    looked_up = sum(kind.parameters for kind in summary.tensors if kind.purpose == "embedding")
    return summary, Model(
        parameters=summary.parameters - looked_up,
        weight_bytes=summary.bytes_per_pass,
        kv_bytes_per_token=summary.kv_bytes_per_token,
    )


def find_model(name: str, *, progress: Progress = silent) -> Path:
    """The folder that is named (with a ``/``), or the one that the recipe builds, perhaps in another variant."""
    return Path(name) if names_folder(name) else build(find_variant(name), progress=progress)
