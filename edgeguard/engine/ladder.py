"""The whole ladder of plans: its rungs from best to cheapest, whichever models they ask.

Each model is read and opened as if it were alone, with its own session, placement audit and cut head; they share the
memory of the machine and nothing else. ``folders`` are those of ``Config.by_model``, in its order. Raises what one
model raises, and ``ConfigError`` when there are more or fewer folders than models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.engine.language_model import LanguageModel, Progress, load_rungs
from edgeguard.engine.model_parts import ModelParts, read_model_parts
from edgeguard.errors import ConfigError


def read_ladder(*, config: Config, folders: Sequence[Path]) -> tuple[ModelParts, ...]:
    """What is known of each model before it is opened."""
    return tuple(read_model_parts(config=one, folder=folder) for one, folder in _each(config, folders))


def load_ladder(
    *, config: Config, folders: Sequence[Path], clock: Clock, progress: Progress, full_head: bool = False
) -> tuple[LanguageModel, ...]:
    """Every rung, loaded; ``warm_up`` of each is still to come."""
    loaded = [
        rung
        for one, folder in _each(config, folders)
        for rung in load_rungs(config=one, folder=folder, clock=clock, progress=progress, full_head=full_head)
    ]
    order = [rung.name for rung in config.rungs]
    return tuple(sorted(loaded, key=lambda rung: order.index(rung.rung)))


def roomiest(ladder: Sequence[LanguageModel]) -> tuple[LanguageModel, ...]:
    """Of each model, in their order, the rung whose cache holds most: passes of every size are timed on it, for the
    price of one is the model's.
    """
    models: list[LanguageModel] = []
    for rung in ladder:
        same = next((at for at, one in enumerate(models) if one.identity == rung.identity), None)
        if same is None:
            models.append(rung)
        elif rung.engine.cache.capacity > models[same].engine.cache.capacity:
            models[same] = rung
    return tuple(models)


def _each(config: Config, folders: Sequence[Path]) -> Iterator[tuple[Config, Path]]:
    models = config.by_model
    if len(models) != len(folders):
        raise ConfigError(
            f"{config.file}: its plans ask {len(models)} models, and {len(folders)} are given, in folders"
        )
    return zip(models, folders, strict=True)
