"""Where ONNX Runtime has put the nodes of a graph, and whether that is where the time of a pass was asked to be.

Known from the session's record of its assignment (onnxruntime 1.24 and newer), else from one profiled run. A provider
that takes a part of the graph as a whole counts with all the nodes in it where the record names them. Raises
``ProviderError`` that lists what is elsewhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.engine.cache import ELEMENT_TYPES
from edgeguard.engine.folder import ModelFolder
from edgeguard.engine.provider import Provider
from edgeguard.engine.shapes import FixedShapes, input_shapes
from edgeguard.errors import ProviderError

RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One node and the provider (by ONNX Runtime's name) that runs it."""

    operator: str
    node: str
    where: str


def records_assignment(runtime: Any) -> bool:
    """Whether a session of this onnxruntime can say where its nodes are."""
    return hasattr(runtime.InferenceSession, "get_provider_graph_assignment_info")


def recorded(session: Any) -> list[Placed]:
    """From a session that was opened with ``RECORD_ASSIGNMENT``."""
    return [
        Placed(operator=node.op_type, node=node.name, where=part.ep_name)
        for part in session.get_provider_graph_assignment_info()
        for node in part.get_nodes()
    ]


def profiled(session: Any, folder: ModelFolder, *, fixed: FixedShapes | None = None) -> list[Placed]:
    """From one pass of a session that was opened with profiling on; its file is read and removed."""
    session.run(None, _one_pass(session, folder, fixed))
    file = Path(session.end_profiling())
    try:
        events = json.loads(file.read_text(encoding="utf-8"))
    finally:
        file.unlink(missing_ok=True)
    placed = {}
    for event in events:
        arguments = event.get("args", {})
        if event.get("cat") == "Node" and "provider" in arguments and "op_name" in arguments:
            node = event["name"].removesuffix("_kernel_time")
            placed[node] = Placed(operator=arguments["op_name"], node=node, where=arguments["provider"])
    return list(placed.values())


def _one_pass(session: Any, folder: ModelFolder, fixed: FixedShapes | None) -> dict[str, Any]:
    """The inputs of a pass of two tokens with none cached, or of the largest of the sizes that there are."""
    import numpy as np

    feeds: dict[str, Any] = {name: np.array(value) for name, value in folder.names.constants.items()}
    any_size = input_shapes(folder, new=2, past=0, total=2)
    shapes = any_size if fixed is None else fixed.inputs(folder, size=fixed.largest)
    types = {node.name: ELEMENT_TYPES.get(node.type, np.int64) for node in session.get_inputs()}
    return feeds | {name: np.ones(shape, types[name]) for name, shape in shapes.items()}


def audit(placed: Sequence[Placed], provider: Provider) -> str:
    """Where everything is, in words, when the heavy operators are all on ``provider``; else ``ProviderError``.

    A profile keeps these words: whatever is placed otherwise at a later start is another thing than was measured.
    """
    if not any(one.where == provider.ort_name for one in placed):
        raise ProviderError(
            f"{provider.name} runs no node of the graph, all are on another provider: is the device there that "
            "model.provider_options names? 'edgeguard providers' says what this machine has"
        )
    strays = [one for one in placed if one.operator in provider.heavy_operators and one.where != provider.ort_name]
    if strays:
        raise ProviderError(
            f"{provider.name} leaves to others what it was asked for: {_listed(strays)}; it runs a graph of "
            f"{provider.graph}: 'edgeguard model build NAME --for {provider.name}' makes it"
        )
    elsewhere = Counter((one.operator, one.where) for one in placed if one.where != provider.ort_name)
    listed = ", ".join(f"{count} {operator} on {where}" for (operator, where), count in sorted(elsewhere.items()))
    return f"{provider.name}, {f'and {listed}' if listed else 'all of it'}"


def _listed(strays: Sequence[Placed]) -> str:
    kinds = Counter((one.operator, one.where) for one in strays)
    return ", ".join(
        f"{count} {operator} on {where} ({_names(strays, operator, where)})"
        for (operator, where), count in sorted(kinds.items())
    )


def _names(strays: Sequence[Placed], operator: str, where: str) -> str:
    names = [one.node for one in strays if (one.operator, one.where) == (operator, where)]
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
