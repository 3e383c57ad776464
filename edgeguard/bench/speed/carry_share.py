"""What of a pass goes to the block sums that make 4-bit weights exact, and to the adapter in the same products.

The same graph is opened a second time without them (its answers are of no use), and passes of both are timed by turns
in one process: the ratio is one of pairs, which a machine that drifts does not change. Needs ``onnx``. Raises what
opening a session raises.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from edgeguard.budget.cost import median
from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.engine.engine import Engine
from edgeguard.engine.language_model import LanguageModel
from edgeguard.engine.model_parts import ModelParts
from edgeguard.engine.providers import provider_of
from edgeguard.engine.session import allowed_threads, import_runtime, open_session
from edgeguard.model.progress import Progress

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

SEED = 1


def carry_share(
    config: Config,
    model: LanguageModel,
    parts: ModelParts,
    *,
    sizes: Sequence[int],
    repeats: int,
    clock: Clock,
    progress: Progress,
) -> dict[int, float]:
    """By its tokens, which share of a pass behind the prefix of ``model`` it is; empty if its graph has no block sums.

    Medians of so many pairs.
    """
    graph = without_carry(parts.head.model or parts.folder.graph.path.read_bytes())
    if graph is None:
        return {}
    provider, folder, head = provider_of(config), parts.folder, replace(parts.head, model=graph)
    opened = open_session(
        folder=folder,
        head=head,
        provider=provider,
        threads=allowed_threads(config.model.threads),
        provider_options=config.model.provider_options,
        session_options=config.model.session_options,
    )
    bare = Engine(
        runtime=import_runtime(provider),
        session=opened.session,
        folder=folder,
        head=head,
        provider=provider,
        capacity=model.engine.cache.capacity,
        clock=clock,
    )
    prefix, draw = model.prompt.prefix, random.Random(SEED)
    ratios: dict[int, list[float]] = {size: [] for size in sizes}
    for done in range(repeats):
        progress("passes without block sums", done, repeats)
        for size in draw.sample(list(sizes), len(sizes)):
            both = draw.sample([model.engine, bare], 2)
            took_ns = {engine: _pass_ns(engine, prefix, size) for engine in both}
            ratios[size].append(took_ns[bare] / took_ns[model.engine])
    progress("passes without block sums", repeats, repeats)
    return {size: 1 - median(found) for size, found in ratios.items()}


def _pass_ns(engine: Engine, prefix: Sequence[int], size: int) -> int:
    """Of the second of two, because the caches of the processor hold the other engine's weights at first."""
    engine.prefill(prefix)
    engine.begin()
    for _ in range(2):
        engine.run([prefix[at % len(prefix)] for at in range(size)])
        engine.cache.rewind(len(prefix))
    return engine.passes[-1].elapsed_ns


def without_carry(graph: bytes) -> bytes | None:
    """The model whose 4-bit products are only that; None if nothing stands beside them."""
    import onnx

    model = onnx.load_model_from_string(graph)
    nodes = model.graph.node
    by_output = {name: node for node in nodes for name in node.output}
    exact = list(_exact_sums(model.graph, by_output))
    if not exact:
        return None
    for total, product in exact:
        nodes.remove(total)
        product.output[0] = total.output[0]
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
