"""What the models of a configuration take of the machine's memory: by their files, and in a worker that runs.

From the files: the weights, and a KV cache for each plan, as large as its longest prompt with its longest answer;
attention that grows it by copies has two of them. In a worker: all that is resident, ONNX Runtime, Python and the
tokenizer with it. Bytes. Raises ``WorkerError`` when the process is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgeguard.bench.subject import model_folders
from edgeguard.budget.roofline import kv_bytes
from edgeguard.config import Config
from edgeguard.engine.ladder import read_ladder
from edgeguard.engine.model_parts import ModelParts, cache_capacity, fixed_shapes
from edgeguard.engine.provider import Provider
from edgeguard.engine.providers import provider_of
from edgeguard.errors import WorkerError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMemory:
    """``cache_bytes`` of each plan by its name; ``""`` where there are no plans."""

    model: str
    weight_bytes: int
    cache_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMemory:
    """``resident_bytes`` are all, ``own_bytes`` those that no other process has part in; ``model_bytes`` is the size of
    the files: graph, weights and tokenizer."""

    model_bytes: int
    resident_bytes: int
    own_bytes: int

    @property
    def of_model(self) -> float:
        """How many times the model's bytes are resident."""
        return self.resident_bytes / self.model_bytes


def worker_memory(pid: int, parts: Iterable[ModelParts]) -> WorkerMemory:
    """Of the worker ``pid`` that has these models."""
    import psutil

    try:
        found = psutil.Process(pid).memory_full_info()
    except psutil.Error as error:
        raise WorkerError(f"the memory of the worker {pid} cannot be read: {error}") from error
    model_bytes = sum(_weight_bytes(one) + one.folder.tokenizer.stat().st_size for one in parts)
    return WorkerMemory(model_bytes=model_bytes, resident_bytes=found.rss, own_bytes=found.uss)


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
