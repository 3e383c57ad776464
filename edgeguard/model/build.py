"""Builds a recipe's model into a folder of the cache, once.

    CACHE/downloads/SHA256.whl                 what was fetched
    CACHE/models/NAME-KEY/                     the folder; KEY hashes source, licence, options, adapter, this package
    CACHE/models/.NAME-KEY.lock, .NAME-KEY/    the lock, and the scratch folder of a build in progress

What a build made is renamed when all of it has reached the disk, so an interrupted one never looks like a model; the
next one removes what it left. Two builds of one key wait for each other. KEY covers the code of this package, so a
changed builder never serves an old folder.

Peak memory is about that of the largest tensor; no model runs, no torch. Raises ``FetchError``, ``ModelError``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.disk import locked, sync
from edgeguard.errors import MissingExtraError, ModelError
from edgeguard.model import manifest
from edgeguard.model.adapter_files import adapter_hash
from edgeguard.model.fetch import content_hash, fetch
from edgeguard.model.options import Attention
from edgeguard.model.progress import Progress, silent
from edgeguard.model.recipe import Recipe
from edgeguard.places import default_cache_dir

if TYPE_CHECKING:
    from edgeguard.model.adapter import Adapter

_KEY_DIGITS = 16


def built_folder(recipe: Recipe, *, cache_dir: Path) -> Path:
    """Where the model of ``recipe`` lies, or will lie."""
    key = {
        "source": content_hash(recipe.source),
        "licence": recipe.licence,
        "build": asdict(recipe.build),
        "adapter": None if recipe.adapter is None else adapter_hash(recipe.adapter),
        "builder": builder_hash(),
    }
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
    return cache_dir / "models" / f"{recipe.name}-{digest[:_KEY_DIGITS]}"


def find_built(recipe: Recipe, *, cache_dir: Path | None = None) -> Path | None:
    """The folder of the model, if it has been built."""
    folder = built_folder(recipe, cache_dir=cache_dir or default_cache_dir())
    return folder if manifest.is_complete(folder) else None


def build(recipe: Recipe, *, cache_dir: Path | None = None, progress: Progress = silent) -> Path:
    """The folder of the built model; instant if it is there already."""
    cache = cache_dir or default_cache_dir()
    folder = built_folder(recipe, cache_dir=cache)
    if manifest.is_complete(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / f".{folder.name}.lock"):
            if not manifest.is_complete(folder):
                _build_into(folder, recipe, downloads=cache / "downloads", progress=progress)
    except OSError as error:
        raise ModelError(f"{cache}: the model cannot be written there: {error}") from error
    return folder


def _build_into(folder: Path, recipe: Recipe, *, downloads: Path, progress: Progress) -> None:
    scratch = folder.parent / f".{folder.name}"
    for remains in (scratch, folder):
        shutil.rmtree(remains, ignore_errors=True)
    made, raw = scratch / "made", scratch / "raw"
    made.mkdir(parents=True)
    raw.mkdir()
    try:
        path = fetch(recipe.source, downloads=downloads, scratch=raw, progress=progress)
        _convert(path, recipe, folder=made, progress=progress)
        for written in (*made.iterdir(), made):  # a power cut must not leave the rename without its content
            sync(written)
        made.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _convert(path: Path, recipe: Recipe, *, folder: Path, progress: Progress) -> None:
    try:
        from edgeguard.model.graph import write_graph
        from edgeguard.model.onnx_file import OnnxFile
    except ImportError as error:
        raise MissingExtraError(package="onnx", extra="models", purpose="building a model") from error
    from edgeguard.model.adapter import Adapter
    from edgeguard.model.genai_config import genai_config
    from edgeguard.model.gguf_source import GgufSource
    from edgeguard.model.tokenizer_json import tokenizer_config_json, tokenizer_json

    progress("read", 0, 1)
    source = GgufSource(path=path)
    adapter = None if recipe.adapter is None else Adapter(folder=recipe.adapter)
    texts = {
        "tokenizer.json": tokenizer_json(source.tokenizer, path=path),
        "tokenizer_config.json": tokenizer_config_json(source.tokenizer, context=source.hyper.context),
        "genai_config.json": genai_config(
            hyper=source.hyper,
            tokenizer=source.tokenizer,
            shared_cache=recipe.build.attention is Attention.GROUPED,
        ),
    }
    for name, content in texts.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    progress("read", 1, 1)
    with OnnxFile(folder=folder) as file:
        write_graph(source=source, adapter=adapter, file=file, options=recipe.build, progress=progress)
        file.save(name=recipe.name)
    manifest.write(folder, facts=_facts(recipe, vocabulary=source.hyper.vocabulary, adapter=adapter))


def _facts(recipe: Recipe, *, vocabulary: int, adapter: Adapter | None) -> dict[str, Any]:
    built_in = adapter and {
        "name": adapter.folder.name,
        "sha256": adapter_hash(adapter.folder),
        "rank": adapter.rank,
        "parameters": adapter.parameters,
    }
    return {
        "name": recipe.name,
        "licence": recipe.licence,
        "source": {**asdict(recipe.source), "sha256": content_hash(recipe.source)},
        "build": asdict(recipe.build),
        "adapter": built_in,
        "builder": builder_hash(),
        "vocabulary": vocabulary,
    }


def builder_hash() -> str:
    """Of the code of this package: what another builder made is not what this one would make."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
