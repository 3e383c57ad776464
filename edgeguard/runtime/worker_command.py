"""The command line of the worker, and the model folders that it names.

Asked by whoever starts a guard, not by the guard's process: that needs the line, not the recipe behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from edgeguard.config import Config
from edgeguard.errors import ModelError
from edgeguard.model.build import built_folder
from edgeguard.model.manifest import is_complete
from edgeguard.places import default_cache_dir
from edgeguard.runtime.model_choice import build_command, chosen_recipe

WORKER_MODULE = "edgeguard.engine.worker"


def worker_argv(config: Path, profile: Path | None, *, models: Sequence[Path], full_head: bool = False) -> list[str]:
    """The worker of these files; the spawner puts its channel's descriptor in place of ``{fd}``. ``models`` are the
    folders of ``Config.by_model``.

    ``full_head``: with a logit for every token, as a plain runtime has it, for comparisons.
    """
    argv = [sys.executable, "-m", WORKER_MODULE, "{fd}", str(config.absolute())]
    argv += [] if profile is None else [str(profile.absolute())]
    argv += [part for model in models for part in ("--model", str(model))]
    return [*argv, *(["--full-head"] if full_head else [])]


def find_model_folders(config: Config) -> tuple[Path, ...]:
    """Those of all models of the ladder of plans."""
    return tuple(map(find_model_folder, config.by_model))


def find_model_folder(config: Config) -> Path:
    """The folder that is named, or that its recipe has been built into: building takes longer than a start may."""
    named, command = config.model.folder, build_command(config)
    if command is None:
        return Path(named).absolute()
    folder = built_folder(chosen_recipe(config), cache_dir=default_cache_dir())
    if not is_complete(folder):
        raise ModelError(
            f"{config.file}: model.folder: {named!r} has not been built on this machine: edgeguard {command}"
        )
    return folder
