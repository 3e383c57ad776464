"""Which model a configuration means: its recipe, in the form that its execution provider runs, and what builds it."""

from __future__ import annotations

from dataclasses import replace

from edgeguard.config import Config
from edgeguard.engine.provider import Provider
from edgeguard.engine.providers import provider_of
from edgeguard.model.options import Activations, Attention, Weights
from edgeguard.model.recipe import Recipe
from edgeguard.model.variant import find_variant

_FLOATS = {"float32": Weights.F32, "float16": Weights.F16}


def chosen_recipe(config: Config) -> Recipe:
    """Of a configuration whose ``model.folder`` names one."""
    recipe = find_variant(config.model.folder, adapter=config.model.adapter)
    return for_provider(recipe, provider_of(config))


def build_command(config: Config) -> str | None:
    """The command that builds the model, without what is called ``edgeguard``; ``None`` where a folder is named."""
    model = config.model
    if "/" in model.folder:
        return None
    adapter = "" if model.adapter is None else f" --adapter {model.adapter}"
    form = "" if model.provider == "cpu" else f" --for {model.provider}"
    return f"model build {model.folder}{adapter}{form}"


def for_provider(recipe: Recipe, provider: Provider) -> Recipe:
    """The recipe, built as ``provider`` runs it; weights that it does not run quantised become floats."""
    graph, build = provider.graph, recipe.build
    made = replace(
        build,
        activations=Activations(graph.activations),
        attention=Attention(graph.attention),
        weights=_FLOATS.get(graph.weights, build.weights),
        embedding=build.embedding or _FLOATS.get(graph.embedding),
    )
    return replace(recipe, build=made)
