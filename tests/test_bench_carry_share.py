"""Without block sums a model has the same 4-bit products alone, without its adapter it gives the file's answers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx

from edgeguard.bench.speed.carry_share import without_adapter, without_carry
from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.head import Head
from edgeguard.engine.providers import find_provider
from edgeguard.engine.session import open_session
from tests.adapters import write_adapter
from tests.engine_setup import apart
from tests.graph_runner import run_graph
from tests.tiny import VOCABULARY, tiny_model


def test_without_block_sums_the_products_are_left_alone_and_the_model_opens(tmp_path: Path) -> None:
    folder = read_model_folder(tiny_model(tmp_path))
    before = folder.graph.path.read_bytes()
    bare = without_carry(before)
    assert bare is not None
    whole, left = (
        Counter(node.op_type for node in onnx.load_model_from_string(one).graph.node) for one in (before, bare)
    )
    assert left["MatMulNBits"] == whole["MatMulNBits"] > 0
    assert left["ReduceSum"] == 1 < whole["ReduceSum"], "that of the attention mask is no part of it"
    weights = [one.name for one in onnx.load_model_from_string(bare).graph.initializer]
    assert not [name for name in weights if name.startswith("blk.") and "carry" in name]
    head = Head(rows=VOCABULARY, tokens=None, model=bare, every_position=False, summary="")
    opened = apart(
        lambda: open_session(
            folder=folder,
            head=head,
            provider=find_provider("cpu"),
            threads=1,
            provider_options={},
            session_options={},
        )
    )
    assert opened.session.get_outputs()[0].shape[-1] == VOCABULARY


def test_without_its_adapter_a_model_answers_as_one_that_was_built_without(tmp_path: Path) -> None:
    tokens = list(range(5, 30))
    plain = tiny_model(tmp_path, logits="all")
    adapted = tiny_model(tmp_path, logits="all", adapter=write_adapter(tmp_path / "adapter"))
    graph = (adapted / "model.onnx").read_bytes()
    left = without_adapter(graph)
    assert left is not None
    assert without_adapter(left) is None
    assert not np.array_equal(run_graph(adapted, tokens), run_graph(plain, tokens))
    (adapted / "model.onnx").write_bytes(left)
    assert np.array_equal(run_graph(adapted, tokens), run_graph(plain, tokens))


def test_a_model_that_has_none_says_so(tmp_path: Path) -> None:
    bare = without_carry(read_model_folder(tiny_model(tmp_path)).graph.path.read_bytes())
    assert bare is not None
    assert without_carry(bare) is None
    assert without_adapter(bare) is None
