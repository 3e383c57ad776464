"""What ``inspect`` says of a folder is what is in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from edgeguard.errors import ModelError
from edgeguard.model.inspect import ModelSummary, inspect
from tests.real import real_model
from tests.tiny import CONTEXT, FEED_FORWARD, HEADS, HIDDEN, KV_HEADS, LAYERS, VOCABULARY, tiny_model

HEAD_SIZE = HIDDEN // HEADS
ATTENTION_IN = HIDDEN * (HIDDEN + 2 * KV_HEADS * HEAD_SIZE)
NORMS = (2 * LAYERS + 1) * HIDDEN


def test_a_tied_model_counts_its_table_once(tmp_path: Path) -> None:
    summary = inspect(tiny_model(tmp_path))
    rows = {(row.purpose, row.precision): row for row in summary.tensors}
    assert (summary.architecture, summary.layers, summary.context) == ("llama", LAYERS, CONTEXT)
    assert (summary.vocabulary, summary.logits, summary.accuracy_level) == (VOCABULARY, "last", 4)
    assert (summary.name, summary.licence, summary.verified) == ("tiny", "Apache-2.0", True)
    assert summary.kv_bytes_per_token == LAYERS * 2 * KV_HEADS * HEAD_SIZE * 4
    assert summary.parameters == VOCABULARY * HIDDEN + NORMS + LAYERS * (
        ATTENTION_IN + HIDDEN * HIDDEN + 3 * HIDDEN * FEED_FORWARD
    )
    assert rows["embedding and head", "int8, blocks of 32"].parameters == VOCABULARY * HIDDEN
    assert rows["attention in", "int4, blocks of 32"].parameters == LAYERS * ATTENTION_IN
    assert rows["feed-forward out", "float32, block carry"].parameters == 0
    assert "other" not in {row.purpose for row in summary.tensors}
    # A block of 32: 16 bytes of weights, 4 of scale, 4 of carry; 32 and 4 for the table's.
    quantised = (summary.parameters - NORMS - VOCABULARY * HIDDEN) // 32 * 24
    assert summary.bytes_per_pass == summary.stored_bytes == quantised + VOCABULARY * HIDDEN // 32 * 36 + NORMS * 4


def test_an_embedding_of_its_own_is_not_read_by_every_pass(tmp_path: Path) -> None:
    summary = inspect(tiny_model(tmp_path, embedding_type="F16", head_type="Q8_0", logits="all"))
    assert summary.stored_bytes - summary.bytes_per_pass == VOCABULARY * HIDDEN * 2
    assert {row.purpose: row.precision for row in summary.tensors}["embedding"] == "float16"
    assert summary.logits == "all"


def test_a_folder_of_another_builder_is_read_by_its_operators(tmp_path: Path) -> None:
    """Without our manifest and configuration, as Optimum lays it out."""
    folder = tiny_model(tmp_path)
    expected = inspect(folder)
    for name in ("manifest.json", "genai_config.json"):
        (folder / name).unlink()
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "max_position_embeddings": CONTEXT}))
    (folder / "onnx").mkdir()
    for name in ("model.onnx", "model.onnx.data"):
        (folder / name).rename(folder / "onnx" / name)
    summary = inspect(folder)
    assert (summary.verified, summary.licence) == (False, None)
    assert (summary.architecture, summary.context) == (expected.architecture, expected.context)
    assert summary.tensors == expected.tensors


def test_the_names_of_other_builders_are_known() -> None:
    from edgeguard.model.graph_weights import weight_uses

    names = {
        "model.layers.0.attn.qkv_proj.MatMul.weight_Q4": "attention in",
        "model.layers.0.self_attn.k_proj.weight": "attention in",
        "model.layers.0.attn.o_proj.MatMul.weight": "attention out",
        "model.layers.0.mlp.gate_proj.MatMul.weight": "feed-forward in",
        "model.layers.0.mlp.down_proj.MatMul.weight": "feed-forward out",
        "lm_head.MatMul.weight": "head",
    }
    weights = [onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=[4, 4]) for name in names]
    nodes = [onnx.helper.make_node("MatMul", ["x", name], [f"y{name}"]) for name in names]
    graph = onnx.helper.make_graph(nodes, "other", [], [], initializer=weights)
    assert [use.purposes for use in weight_uses(graph)] == [{purpose} for purpose in names.values()]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "model.onnx").write_bytes(b"no graph"), "model.onnx: is damaged"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json: is missing"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest.json: cannot be read"),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "manifest.json: is no manifest"),
    ],
)
def test_a_damaged_folder_is_named(tmp_path: Path, damage: Callable[[Path], object], said: str) -> None:
    folder = tiny_model(tmp_path)
    damage(folder)
    with pytest.raises(ModelError, match=re.escape(said)):
        inspect(folder)


@pytest.mark.parametrize("content", [b"", b"no graph at all", b"\xff" * 64])
def test_a_file_that_is_no_graph_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelError, match=r"model\.onnx: "):
        inspect(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no such model folder"):
        inspect(tmp_path / "nowhere")


@pytest.mark.model
def test_the_real_model_has_its_published_size() -> None:
    summary: ModelSummary = inspect(real_model())
    assert summary.parameters == 134_515_008
    assert summary.kv_bytes_per_token == 30 * 2 * 3 * 64 * 4
    assert (summary.layers, summary.context, summary.vocabulary) == (30, 8192, 49_152)
