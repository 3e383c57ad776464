"""What lies in the cache of built models, and what of it nobody finds any more.

A folder is found again by its key, which hashes the code of the builder too, or by a configuration that names the
folder; so after an update of edgeguard the others only take room. Scratch folders of interrupted builds are the same.
What execution providers have compiled a model to goes with it. Removing takes the folder's lock, so that no build is
disturbed; a worker that has a removed model open keeps it. Sizes in bytes. Raises ``ModelError``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeguard.disk import locked
from edgeguard.errors import ModelError
from edgeguard.model import manifest
from edgeguard.model.build import builder_hash
from edgeguard.places import compiled_directories


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedModel:
    """One folder, and what it has been compiled to. ``name``: as it could be asked for.

    ``found_by``: this version of edgeguard, or the configuration that names the folder; ``None``: nobody.
    """

    folder: Path
    compiled: tuple[Path, ...]
    name: str
    size_bytes: int
    found_by: str | None


def cached_models(cache_dir: Path, *, named: Mapping[Path, str]) -> list[CachedModel]:
    """All of them, by name; those that are found first. ``named``: what configurations name, and which."""
    folders = [path for path in (cache_dir / "models").glob("*") if path.is_dir()]
    models = [_read(folder, named=named) for folder in folders]
    return sorted(models, key=lambda one: (one.found_by is None, one.name, one.folder.name))


def remove(models: Sequence[CachedModel]) -> None:
    """Take these folders off the disk."""
    for model in models:
        for folder in (*model.compiled, model.folder):
            try:
                with locked(folder.parent / f".{folder.name.lstrip('.')}.lock"):
                    if folder.exists():  # what we waited for has finished
                        shutil.rmtree(folder)
            except OSError as error:
                raise ModelError(f"{folder}: cannot be removed: {error}") from error


def _read(folder: Path, *, named: Mapping[Path, str]) -> CachedModel:
    try:
        facts = manifest.read(folder)
    except ModelError:
        facts = None
    ours = facts is not None and facts.get("builder") == builder_hash() and manifest.is_complete(folder)
    namers = [by for path, by in named.items() if path.is_relative_to(folder.resolve())]  # or a graph in it
    compiled = compiled_directories(folder)
    files = (path for place in (folder, *compiled) for path in place.rglob("*") if path.is_file())
    return CachedModel(
        folder=folder,
        compiled=compiled,
        name="not finished" if facts is None else _name(facts),
        size_bytes=sum(path.stat().st_size for path in files),
        found_by="this version" if ours else next(iter(namers), None),
    )


def _name(facts: dict[str, object]) -> str:
    """``smollm2-135m:q8,head=f32+drive``."""
    build, adapter = facts.get("build"), facts.get("adapter")
    chosen = build if isinstance(build, dict) else {}
    name = str(facts.get("name"))
    name += f":{chosen['weights']}" if chosen.get("weights") else ""
    name += "".join(f",{part}={chosen[part]}" for part in ("head", "embedding") if chosen.get(part))
    return name + (f"+{adapter['name']}" if isinstance(adapter, dict) else "")
