"""The real 135M model, for tests marked ``model``: built once into the cache, from the network the first time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from edgeguard.model.build import build
from edgeguard.model.fetch import fetch
from edgeguard.model.options import GraphOptions, Logits
from edgeguard.model.progress import silent
from edgeguard.model.recipe import find
from edgeguard.places import default_cache_dir

REAL = "smollm2-135m"


def real_model(*, accuracy_level: int = 4, logits: str = "last") -> Path:
    """The model's folder."""
    options = GraphOptions(accuracy_level=accuracy_level, logits=Logits(logits))
    return build(replace(find(REAL), build=options))


def real_gguf(folder: Path) -> Path:
    """The file it is built from, unpacked into ``folder``."""
    return fetch(find(REAL).source, downloads=default_cache_dir() / "downloads", scratch=folder, progress=silent)
