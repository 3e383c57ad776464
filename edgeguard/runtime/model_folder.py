"""Where the configured model is: the folder that is named, or the one that its recipe has been built into."""

from __future__ import annotations

from pathlib import Path

from edgeguard.config import Config
from edgeguard.errors import ModelError
from edgeguard.model.build import built_folder, default_cache_dir
from edgeguard.model.manifest import is_complete
from edgeguard.model.recipe import find


def find_model_folder(config: Config) -> Path:
    """The folder; nothing is built for it, because that takes longer than a robot's start may."""
    named = config.model.folder
    if "/" in named:
        return Path(named).absolute()
    folder = built_folder(find(named), cache_dir=default_cache_dir())
    if not is_complete(folder):
        raise ModelError(
            f"{config.file}: model.folder: {named!r} has not been built on this machine: edgeguard model build {named}"
        )
    return folder
