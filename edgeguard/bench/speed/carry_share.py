"""What of a pass goes to the block sums that make 4-bit weights exact, and what to an adapter in the same products.

The same graph is opened again without the adapter, and without either (the answers are of no use), and passes of all
are timed by turns in one process: the ratios are those of neighbours in time, which a machine that drifts does not
change. Needs ``onnx``. Raises what opening a session raises.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from edgeguard.budget.cost import median
from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.engine.engine import Engine
from edgeguard.engine.head import Head
from edgeguard.engine.language_model import LanguageModel
from edgeguard.engine.model_parts import ModelParts
from edgeguard.engine.providers import provider_of
from edgeguard.engine.session import allowed_threads, import_runtime, open_session
from edgeguard.model.progress import Progress

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

SEED = 1
CARRY, ADAPTER = "carry", "adapter"


def carry_share(
    config: Config,
    model: LanguageModel,
    parts: ModelParts,
    *,
    sizes: Sequence[int],
    repeats: int,
    clock: Clock,
    progress: Progress,
) -> dict[str, dict[int, float]]:
    """Of ``CARRY`` and ``ADAPTER``, by the tokens of a pass behind the prefix of ``model``, which share of it each is.

    Medians of so many rounds; what the graph does not have is left out.
    """
    graph = parts.head.model or parts.folder.graph.path.read_bytes()
    barer = {name: left for name, left in ((ADAPTER, without_adapter(graph)), (CARRY, without_carry(graph))) if left}
    if not barer:
        return {}
    capacity = model.engine.cache.capacity
    opened = [
        _engine(config, parts, replace(parts.head, model=left), capacity=capacity, clock=clock)
        for left in barer.values()
    ]
    engines = [model.engine, *opened]  # each lacks what the one before it lacks, and one thing more
    prefix, draw = model.prompt.prefix, random.Random(SEED)
    shares: dict[str, dict[int, list[float]]] = {name: {size: [] for size in sizes} for name in barer}
    for done in range(repeats):
        progress("passes without block sums", done, repeats)
        for size in draw.sample(list(sizes), len(sizes)):
            took_ns = {engine: _pass_ns(engine, prefix, size) for engine in draw.sample(engines, len(engines))}
            for name, (fuller, lacking) in zip(barer, pairwise(engines), strict=True):
                shares[name][size].append((took_ns[fuller] - took_ns[lacking]) / took_ns[model.engine])
    progress("passes without block sums", repeats, repeats)
    return {name: {size: median(found) for size, found in by_size.items()} for name, by_size in shares.items()}


def _engine(config: Config, parts: ModelParts, head: Head, *, capacity: int, clock: Clock) -> Engine:
    provider = provider_of(config)
    opened = open_session(
        folder=parts.folder,
        head=head,
        provider=provider,
        threads=allowed_threads(config.model.threads),
        provider_options=config.model.provider_options,
        session_options=config.model.session_options,
    )
    return Engine(
        runtime=import_runtime(provider),
        session=opened.session,
        folder=parts.folder,
        head=head,
        provider=provider,
        capacity=capacity,
        clock=clock,
    )


def _pass_ns(engine: Engine, prefix: Sequence[int], size: int) -> int:
    """Of the second of two, because the caches of the processor hold another engine's weights at first."""
    engine.prefill(prefix)
    engine.begin()
    for _ in range(2):
        engine.run([prefix[at % len(prefix)] for at in range(size)])
        engine.cache.rewind(len(prefix))
    return engine.passes[-1].elapsed_ns


def without_adapter(graph: bytes) -> bytes | None:
    """The model whose 4-bit products have only their block sums beside them; None if nothing else stands there."""
    model, by_output = _parse(graph)
    weights = {one.name: one for one in model.graph.initializer}
    found = False
    for total, _ in _exact_sums(model.graph, by_output):
        carried = by_output[total.input[1]]
        factors = by_output[carried.input[0]]
        if factors.op_type != "Concat":
            continue
        found = True
        sums, adapted = factors.input  # ``linear`` puts the block sums first, and so their rows of the weight
        weight, rank = weights[carried.input[1]], weights[by_output[adapted].input[1]].dims[1]
        rows, columns = weight.dims
        for entry in weight.external_data:
            if entry.key == "length":
                entry.value = str(int(entry.value) * (rows - rank) // rows)
        weight.dims[:] = [rows - rank, columns]
        carried.input[0] = sums
    return _written(model) if found else None


def without_carry(graph: bytes) -> bytes | None:
    """The model whose 4-bit products are only that; None if no block sums stand beside them."""
    model, by_output = _parse(graph)
    exact = list(_exact_sums(model.graph, by_output))
    for total, product in exact:
        model.graph.node.remove(total)
        product.output[0] = total.output[0]
    return _written(model) if exact else None


def _parse(graph: bytes) -> tuple[ModelProto, dict[str, NodeProto]]:
    """The model, and its nodes by what they put out."""
    import onnx

    model = onnx.load_model_from_string(graph)
    return model, {name: node for node in model.graph.node for name in node.output}


def _written(model: ModelProto) -> bytes:
    _drop_unused(model.graph)
    content: bytes = model.SerializeToString()
    return content


def _exact_sums(graph: GraphProto, by_output: Mapping[str, NodeProto]) -> Iterator[tuple[NodeProto, NodeProto]]:
    """Each ``Add`` of what stands beside a 4-bit product, and the product."""
    for node in list(graph.node):
        if node.op_type == "Add":
            product, beside = (by_output.get(name) for name in node.input)
            if product is not None and product.op_type == "MatMulNBits" and _has_block_sums(beside, by_output):
                yield node, product


def _has_block_sums(beside: NodeProto | None, by_output: Mapping[str, NodeProto]) -> bool:
    if beside is None or beside.op_type != "MatMul":
        return False
    factor = by_output.get(beside.input[0])
    parts = [factor] if factor is None or factor.op_type != "Concat" else [by_output.get(one) for one in factor.input]
    return any(part is not None and part.op_type == "ReduceSum" for part in parts)


def _drop_unused(graph: GraphProto) -> None:
    """Nodes and weights that nothing reads any more."""
    read = {one.name for one in graph.output}
    for node in reversed(list(graph.node)):  # in the order of a valid graph what reads stands behind what is read
        if read.isdisjoint(node.output):
            graph.node.remove(node)
        else:
            read.update(node.input)
    for weight in list(graph.initializer):
        if weight.name not in read:
            graph.initializer.remove(weight)
