"""A model by what people call it: a recipe, perhaps in another kind of weights, perhaps with an adapter.

    RECIPE[:WEIGHTS][,head=WEIGHTS][,embedding=WEIGHTS][+ADAPTER]      smollm2-135m:q8,head=q4+./my-adapter

Raises ``ConfigError`` naming what there is instead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from edgeguard.errors import ConfigError
from edgeguard.model.adapter_files import find_adapter
from edgeguard.model.options import Weights
from edgeguard.model.recipe import Recipe, find

_PARTS = ("head", "embedding")


def find_variant(name: str, *, adapter: str | None = None) -> Recipe:
    """The recipe of ``name`` with its choices made; ``adapter`` is one that was named apart."""
    chosen, _, named_adapter = name.partition("+")
    first, *parts = chosen.split(",")
    recipe_name, _, weights = first.partition(":")
    choices: dict[str, Any] = {"weights": read_weights(weights, where=name)} if weights else {}
    for part in parts:
        key, _, value = part.partition("=")
        if key not in _PARTS or key in choices:
            raise ConfigError(f"{name!r}: {part!r} is neither head=WEIGHTS nor embedding=WEIGHTS, once each")
        choices[key] = read_weights(value, where=name)
    recipe = find(recipe_name)
    if adapter is not None and named_adapter:
        raise ConfigError(f"{name!r} names an adapter, and {adapter!r} is a second one; there can be one")
    folder = find_adapter(adapter or named_adapter) if adapter or named_adapter else recipe.adapter
    return replace(recipe, build=replace(recipe.build, **choices), adapter=folder)


def names_folder(name: str) -> bool:
    """Whether ``name`` is a finished model folder: it has a ``/`` and is no recipe file."""
    chosen = name.partition("+")[0]
    return "/" in chosen and not chosen.split(",")[0].partition(":")[0].endswith(".toml")


def read_weights(value: str, *, where: str) -> Weights:
    try:
        return Weights(value)
    except ValueError as error:
        kinds = ", ".join(kind.value for kind in Weights)
        raise ConfigError(f"{where!r}: {value!r} is no kind of weights; there are {kinds}") from error
