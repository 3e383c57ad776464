"""What the models of a configuration take of the machine's memory: their weights, and a KV cache for each plan.

Bytes; from the files alone, so without what ONNX Runtime keeps beside them. A cache is as large as its plan's longest
prompt with its longest answer; attention that grows it by copies has two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgeguard.bench.subject import model_folders
from edgeguard.budget.roofline import kv_bytes
from edgeguard.config import Config
from edgeguard.engine.ladder import read_ladder
from edgeguard.engine.model_parts import ModelParts, cache_capacity, fixed_shapes
from edgeguard.engine.provider import Provider
from edgeguard.engine.providers import provider_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMemory:
    """``cache_bytes`` of each plan by its name; ``""`` where there are no plans."""

    model: str
    weight_bytes: int
    cache_bytes: Mapping[str, int]


def memory_of(config: Config) -> tuple[ModelMemory, ...]:
    """Of each model of the ladder, the best plan's first; one that has not been built is."""
    provider = provider_of(config)
    parts = read_ladder(config=config, folders=model_folders(config))
    return tuple(
        ModelMemory(model=one.model.folder, weight_bytes=_weight_bytes(model), cache_bytes=_caches(model, provider))
        for one, model in zip(config.by_model, parts, strict=True)
    )


def _weight_bytes(parts: ModelParts) -> int:
    graph = parts.folder.graph
    return sum(file.stat().st_size for file in (graph.path, *(graph.path.parent / name for name in graph.external)))


def _caches(parts: ModelParts, provider: Provider) -> dict[str, int]:
    folder, fixed = parts.folder, fixed_shapes(parts, provider)
    banks = 1 if folder.shared_cache else 2
    element = 2 if provider.graph.activations == "float16" else 4
    return {
        rung.name: banks
        * round(
            kv_bytes(
                layers=folder.layers,
                kv_heads=folder.kv_heads,
                head_size=folder.head_size,
                tokens=cache_capacity(rung, folder) if fixed is None else fixed.capacity,
                bytes_per_element=element,
            )
        )
        for rung in parts.rungs
    }
