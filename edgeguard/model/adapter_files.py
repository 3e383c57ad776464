"""Where a low-rank adapter lies, and the hash that identifies it; nothing here reads its weights.

Adapters that come with edgeguard lie in ``adapters/`` beside the recipes, a folder each; a user's own is named by its
path. Raises ``ConfigError`` for a name that nothing has, ``ModelError`` for a folder without the files.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from edgeguard.errors import ConfigError, ModelError
from edgeguard.model.manifest import sha256_of
from edgeguard.model.recipe import shipped_folder

CONFIG_NAME = "adapter_config.json"
WEIGHTS_NAME = "adapter_model.safetensors"


def known_adapters() -> dict[str, Path]:
    """The adapters that come with edgeguard, by name."""
    return {file.parent.name: file.parent for file in sorted(shipped_folder().glob(f"adapters/*/{CONFIG_NAME}"))}


def find_adapter(named: str) -> Path:
    """The folder of an adapter: one of ours by its name, or a path, which has a ``/``."""
    if "/" in named:
        path = Path(named)
        for name in (CONFIG_NAME, WEIGHTS_NAME):
            if not (path / name).is_file():
                raise ModelError(
                    f"{path / name}: is missing; an adapter is a folder as PEFT's save_pretrained writes it"
                )
        return path.absolute()
    adapters = known_adapters()
    if named not in adapters:
        raise ConfigError(
            f"no adapter {named!r}; there are {', '.join(adapters) or 'none'}, or name a folder of your own (with a /)"
        )
    return adapters[named]


def adapter_hash(folder: Path) -> str:
    """The SHA-256 over those of its two files."""
    return hashlib.sha256(
        "".join(sha256_of(folder / name) for name in (CONFIG_NAME, WEIGHTS_NAME)).encode()
    ).hexdigest()
