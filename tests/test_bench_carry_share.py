"""A model without its block sums has the same 4-bit products and nothing beside them, and opens."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx

from edgeguard.bench.speed.carry_share import without_carry
from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.head import Head
from edgeguard.engine.providers import find_provider
from edgeguard.engine.session import open_session
from tests.engine_setup import apart
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


def test_a_model_that_has_none_says_so(tmp_path: Path) -> None:
    bare = without_carry(read_model_folder(tiny_model(tmp_path)).graph.path.read_bytes())
    assert bare is not None
    assert without_carry(bare) is None
