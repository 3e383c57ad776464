"""What lies in the cache of built models, and what of it nobody finds any more.

A folder is found again by its key, which hashes the code of the builder too; so after an update of edgeguard the old
folders only take room. Scratch folders of interrupted builds are the same. Removing takes the folder's lock, so that no
build is disturbed; a worker that has a removed model open keeps it. Sizes in bytes. Raises ``ModelError``.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from edgeguard.errors import ModelError
from edgeguard.model import manifest
from edgeguard.model.build import builder_hash, locked


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedModel:
    """One folder. ``usable``: this version of edgeguard would find it; ``name``: as it could be asked for."""

    folder: Path
    name: str
    size_bytes: int
    usable: bool


def cached_models(cache_dir: Path) -> list[CachedModel]:
    """All of them, by name; those that are usable first."""
    folders = [path for path in (cache_dir / "models").glob("*") if path.is_dir()]
    return sorted(map(_read, folders), key=lambda one: (not one.usable, one.name, one.folder.name))


def remove(models: list[CachedModel]) -> None:
    """Take these folders off the disk."""
    for model in models:
        try:
            with locked(_lock_of(model.folder)):
                if model.folder.exists():  # the build that we waited for has finished
                    shutil.rmtree(model.folder)
        except OSError as error:
            raise ModelError(f"{model.folder}: cannot be removed: {error}") from error


def _lock_of(folder: Path) -> Path:
    """The lock of a model's folder, or of the scratch folder of its build."""
    return folder.parent / f".{folder.name.lstrip('.')}.lock"


def _read(folder: Path) -> CachedModel:
    try:
        facts = manifest.read(folder)
    except ModelError:
        facts = None
    usable = facts is not None and facts.get("builder") == builder_hash() and manifest.is_complete(folder)
    return CachedModel(
        folder=folder,
        name="not finished" if facts is None else _name(facts),
        size_bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        usable=usable,
    )


def _name(facts: dict[str, object]) -> str:
    """``smollm2-135m:q8,head=f32+drive``."""
    build, adapter = facts.get("build"), facts.get("adapter")
    chosen = build if isinstance(build, dict) else {}
    name = str(facts.get("name"))
    name += f":{chosen['weights']}" if chosen.get("weights") else ""
    name += "".join(f",{part}={chosen[part]}" for part in ("head", "embedding") if chosen.get(part))
    return name + (f"+{adapter['name']}" if isinstance(adapter, dict) else "")
