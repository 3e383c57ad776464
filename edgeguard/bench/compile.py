"""Has a configuration's execution provider compile its models, and keeps what came of it for later starts."""

from __future__ import annotations

from pathlib import Path

from edgeguard.bench.subject import model_folder
from edgeguard.clock import SystemClock
from edgeguard.config import Config
from edgeguard.engine.compiled import write_compiled
from edgeguard.engine.language_model import load_rungs
from edgeguard.engine.model_parts import compiled_facts, read_model_parts
from edgeguard.engine.providers import provider_of
from edgeguard.model.progress import Progress, silent
from edgeguard.places import compiled_directory


def compile_models(config: Config, *, progress: Progress = silent) -> tuple[Path, ...]:
    """Where the models of the ladder of plans are kept; ``ProviderError`` for a provider that keeps nothing."""
    return tuple(_compile(one, progress=progress) for one in config.by_model)


def _compile(config: Config, *, progress: Progress) -> Path:
    provider = provider_of(config)
    folder = model_folder(config, progress=progress)
    parts = read_model_parts(config=config, folder=folder)
    directory = compiled_directory(parts.folder.path, provider.name)

    def compile_into(scratch: Path) -> None:
        for model in load_rungs(
            config=config, folder=folder, clock=SystemClock(), progress=progress, compile_to=scratch
        ):
            model.warm_up(progress)

    write_compiled(directory, provider=provider, facts=compiled_facts(parts, provider), compile_into=compile_into)
    return directory
