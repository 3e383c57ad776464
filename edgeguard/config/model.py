"""Reads what answers: ``[model]``, the model that a ``[[plan]]`` has instead, and ``[[provider]]``.

Whether there is such a recipe, folder or library is for who opens it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from edgeguard.config.reader import Table
from edgeguard.config.sections import CustomOps, Model, OwnProvider


def read_model(table: Table, *, folder: Path) -> Model:
    named, adapter = _read_choice(table, folder=folder, otherwise="smollm2-135m")
    options = table.table("provider_options")
    session = table.table("session_options")
    model = Model(
        folder=named,
        adapter=adapter,
        provider=table.text("provider", default="cpu"),
        threads=table.integer("threads", default=0, low=0, high=1_024),
        provider_options={name: options.text(name) for name in options.names()},
        session_options={name: session.text(name) for name in session.names()},
        shapes=table.text("shapes", default=None, among=("any", "sizes", "one")),
        custom_ops=tuple(_read_custom_ops(one, folder=folder) for one in table.tables("custom_ops")),
    )
    table.close()
    return model


def _read_custom_ops(table: Table, *, folder: Path) -> CustomOps:
    custom_ops = CustomOps(library=folder / table.text("library"), sha256=table.text("sha256").lower())
    table.close()
    return custom_ops


def read_plan_model(table: Table, *, folder: Path, model: Model) -> Model:
    """``model``, or the one that a ``[[plan]]`` names instead, run in the same way."""
    named, adapter = _read_choice(table, folder=folder, otherwise=model.folder)
    if "folder" not in table and adapter is None:
        return model
    return replace(model, folder=named, adapter=adapter)


def _read_choice(table: Table, *, folder: Path, otherwise: str) -> tuple[str, str | None]:
    """A recipe's name or a folder, and an adapter; both relative to ``folder`` where they are paths."""
    named = table.text("folder", default=None)
    place = otherwise if named is None else str(folder / named) if "/" in named else named
    adapter = table.text("adapter", default=None)
    if adapter is not None and "/" in place:
        table.refuse("adapter", f"{adapter!r} is built into a recipe's model, and folder {place!r} is a finished one")
    return place, str(folder / adapter) if adapter is not None and "/" in adapter else adapter


def read_provider(table: Table, *, folder: Path) -> OwnProvider:
    provider = OwnProvider(
        name=table.text("name"),
        ort_name=table.text("execution_provider"),
        library=folder / table.text("library"),
        kv_device=table.text("kv_device", default="cpu"),
        smallest_pass=table.integer("smallest_pass", default=1, low=1, high=64),
        same_bits=table.flag("same_bits", default=False),
        compiles=table.flag("compiles", default=False),
        activations=table.text("activations", default="float32", among=("float32", "float16")),
        attention=table.text("attention", default="plain", among=("plain", "GroupQueryAttention")),
    )
    table.close()
    return provider
