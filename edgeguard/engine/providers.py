"""Which row of the table of execution providers is meant: by its name, or by a configuration, which may bring its own.

Raises ``ProviderError`` that says the nearest name, or all.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from edgeguard.config import Config
from edgeguard.engine.provider import Compiled, Graph, Provider
from edgeguard.engine.provider_table import PROVIDERS
from edgeguard.errors import ProviderError


def find_provider(name: str) -> Provider:
    """The row called ``name``; ``ProviderError`` names the known ones."""
    return _find(name, PROVIDERS)


def own_providers(config: Config) -> tuple[Provider, ...]:
    """The rows that a configuration brings itself (``[[provider]]``)."""
    return tuple(
        Provider(
            name=one.name,
            ort_name=one.ort_name,
            package=one.library.name,
            extra="cpu",
            hardware=f"[[provider]] of {config.file.name}",
            library=str(one.library.absolute()),  # a name alone is looked for elsewhere
            kv_device=one.kv_device,
            smallest_pass=one.smallest_pass,
            same_bits=one.same_bits,
            compiled=Compiled(what=f"{one.name}'s own format") if one.compiles else None,
            graph=Graph(activations=one.activations, attention=one.attention),
        )
        for one in config.providers
    )


def provider_of(config: Config) -> Provider:
    """The provider that a configuration asks for, one of its own rows perhaps, with the shapes that it asks for."""
    row = _find(config.model.provider, (*own_providers(config), *PROVIDERS))
    shapes = config.model.shapes or row.shapes
    captures = config.model.provider_options.get(row.graph_option or "") in ("1", "true", "True")
    if captures and shapes == "any":
        shapes = "sizes"  # a graph is replayed as it was captured, shapes and all
    return replace(row, shapes=shapes, captures=captures)


def _find(name: str, rows: Sequence[Provider]) -> Provider:
    names = [row.name for row in rows]
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
        raise ProviderError(f"model.provider: there is no execution provider {name!r}; {hint}")
    return rows[names.index(name)]
