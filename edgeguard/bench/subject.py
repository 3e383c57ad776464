"""What is measured: how to start it, and what it is without starting it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from edgeguard.config import Config
from edgeguard.engine.identity import joint_identity
from edgeguard.engine.ladder import read_ladder
from edgeguard.model.build import build
from edgeguard.model.progress import Progress, silent
from edgeguard.runtime.model_choice import chosen_recipe
from edgeguard.runtime.worker_command import worker_argv

WorkerCommand: TypeAlias = Callable[[Path, Path | None], Sequence[str]]
"""The command line of a worker for a configuration and perhaps a profile; ``{fd}`` stands for its channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """``identity`` is what the worker will say of itself, known within a second because nothing is loaded for it."""

    command: WorkerCommand
    identity: Callable[[], Mapping[str, str]]


def model_subject(config: Config, *, progress: Progress = silent) -> Subject:
    """The models of ``config``; one that is named by its recipe is built, unless it has been."""
    folders = model_folders(config, progress=progress)

    def identity() -> Mapping[str, str]:
        models = read_ladder(config=config, folders=folders)
        return joint_identity([(one.rungs[0].name, one.identity) for one in models])

    return Subject(command=lambda file, profile: worker_argv(file, profile, models=folders), identity=identity)


def model_folders(config: Config, *, progress: Progress = silent) -> tuple[Path, ...]:
    """Those of all models of the ladder of plans, the best plan's first."""
    return tuple(model_folder(one, progress=progress) for one in config.by_model)


def model_folder(config: Config, *, progress: Progress = silent) -> Path:
    """Where the model is: the folder that is named, or the one that its recipe builds."""
    named = config.model.folder
    if "/" in named:
        return Path(named).absolute()
    return build(chosen_recipe(config), progress=progress)
