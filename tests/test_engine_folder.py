"""Model folders that are whole, and every way in which they are not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.graph_file import read_graph_file
from edgeguard.errors import ModelError
from tests.tiny import CONTEXT, KV_HEADS, LAYERS, VOCABULARY, tiny_model


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(built, tmp_path / "model"))


def edit_json(file: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(file.read_bytes())
    change(content)
    file.write_text(json.dumps(content))


def without_manifest(folder: Path) -> Path:
    """As another tool builds it."""
    (folder / "manifest.json").unlink()
    return folder


def test_a_folder_says_what_the_engine_must_know(built: Path) -> None:
    model = read_model_folder(built)
    assert (model.layers, model.kv_heads, model.vocabulary, model.context) == (LAYERS, KV_HEADS, VOCABULARY, CONTEXT)
    assert model.end_tokens == (2,)
    assert model.special["eos_token"] == "<|im_end|>"
    assert model.names.cache(layers=1) == [
        ("past_key_values.0.key", "present.0.key"),
        ("past_key_values.0.value", "present.0.value"),
    ]
    assert "add_generation_prompt" in model.chat_template


def test_the_graph_file_agrees_with_the_onnx_package(built: Path) -> None:
    proto = onnx.load(built / "model.onnx", load_external_data=False)
    graph = read_graph_file(built / "model.onnx")
    assert (graph.ir_version, graph.opset) == (proto.ir_version, proto.opset_import[0].version)
    assert graph.external == ("model.onnx.data",)


def test_external_data_is_found_wherever_a_tensor_can_hide(tmp_path: Path) -> None:
    def tensor(location: str) -> onnx.TensorProto:
        proto = onnx.TensorProto(name=location, data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
        proto.external_data.add(key="location", value=location)
        return proto

    def constant(location: str) -> onnx.NodeProto:
        return onnx.helper.make_node("Constant", [], ["x"], value=tensor(location))

    inner = onnx.helper.make_graph([constant("in_subgraph")], "inner", [], [], initializer=[tensor("inner_weight")])
    branch = onnx.helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    graph = onnx.helper.make_graph([constant("in_node"), branch], "outer", [], [], initializer=[tensor("weight")])
    opset = onnx.helper.make_opsetid("", 21)
    function = onnx.helper.make_function("local", "f", [], [], [constant("in_function")], [opset])
    model = onnx.helper.make_model(graph, functions=[function], opset_imports=[opset])
    names = {"in_subgraph", "inner_weight", "in_node", "weight", "in_function"}
    for name in names:
        (tmp_path / name).write_bytes(b"\0" * 4)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    assert set(read_graph_file(tmp_path / "model.onnx").external) == names


@pytest.mark.parametrize("name", ["../weights", "/etc/passwd", "sub/weights", "", ".."])
def test_weights_outside_the_folder_are_refused(folder: Path, name: str) -> None:
    proto = onnx.load(folder / "model.onnx", load_external_data=False)
    entry = next(one for tensor in proto.graph.initializer for one in tensor.external_data if one.key == "location")
    entry.value = name
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(ModelError, match="outside its folder"):
        read_graph_file(folder / "model.onnx")


def test_weights_behind_a_link_are_refused(folder: Path) -> None:
    data = folder / "model.onnx.data"
    elsewhere = folder.parent / "elsewhere"
    data.rename(elsewhere)
    data.symlink_to(elsewhere)
    with pytest.raises(ModelError, match="symbolic link"):
        read_model_folder(folder)
    data.unlink()
    os.link(elsewhere, data)
    with pytest.raises(ModelError, match="hard link"):
        read_model_folder(folder)


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "there is no model folder"),
    "no configuration": (
        lambda folder: (folder / "genai_config.json").unlink(),
        "has neither genai_config.json nor config.json",
    ),
    "no graph": (lambda folder: (folder / "model.onnx").unlink(), r"model.onnx: cannot be read"),
    "no weights": (lambda folder: (folder / "model.onnx.data").unlink(), r"model.onnx.data: is missing"),
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer.json: cannot be read"),
    "empty graph": (lambda folder: (folder / "model.onnx").write_bytes(b""), "no ONNX model"),
    "text for a graph": (lambda folder: (folder / "model.onnx").write_text("git lfs pointer" * 9), "no ONNX model"),
    "half a graph": (lambda folder: os.truncate(folder / "model.onnx", 9_000), "no ONNX model"),
    "half the weights": (lambda folder: os.truncate(folder / "model.onnx.data", 9_000), "model.onnx.data: is damaged"),
    "one bit of the weights": (lambda folder: flip_a_byte(folder / "model.onnx.data"), "model.onnx.data: is damaged"),
    "another tokenizer": (lambda folder: flip_a_byte(folder / "tokenizer.json"), "tokenizer.json: is damaged"),
    "not JSON": (lambda folder: (folder / "genai_config.json").write_text("{"), "is not JSON"),
    "a list": (lambda folder: (folder / "genai_config.json").write_text("[]"), "is not a JSON object"),
    "a broken manifest": (lambda folder: (folder / "manifest.json").write_text("{}"), "files is None"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_folder_is_refused_by_file(folder: Path, name: str) -> None:
    damage, message = DAMAGE[name]
    damage(folder)
    with pytest.raises(ModelError, match=message) as refusal:
        read_model_folder(folder)
    assert refusal.value.exit_code == 5
    assert "build" in str(refusal.value), "the way out"


def set_value(path: str, value: object) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        *parents, last = path.split(".")
        for name in parents:
            content = content[name]
        content[last] = value

    return change


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("search.past_present_share_buffer", "yes", "share_buffer is 'yes'"),
        ("model.vocab_size", "many", "model.vocab_size is 'many'"),
        ("model.context_length", 0, "model.context_length is 0"),
        ("model.decoder.num_hidden_layers", True, "num_hidden_layers is True"),
        ("model.decoder.inputs", {}, "model.decoder.inputs.input_ids is None"),
        ("model.decoder.inputs.past_key_names", "past", "'past' has no place %d"),
        ("model.decoder.filename", "other.onnx", "other.onnx: cannot be read"),
        ("model.eos_token_id", None, "model.eos_token_id is None"),
    ],
)
def test_a_configuration_of_another_kind_is_refused_by_key(
    folder: Path, path: str, value: object, message: str
) -> None:
    edit_json(without_manifest(folder) / "genai_config.json", set_value(path, value))
    with pytest.raises(ModelError, match=message):
        read_model_folder(folder)


def test_a_folder_of_another_tool_has_an_identity_too(folder: Path, built: Path) -> None:
    assert read_model_folder(without_manifest(folder)).model_digest == read_model_folder(built).model_digest
    flip_a_byte(folder / "model.onnx.data")
    assert read_model_folder(folder).model_digest != read_model_folder(built).model_digest


def test_the_chat_template_may_lie_in_a_file_of_its_own_or_in_a_list(folder: Path) -> None:
    config = without_manifest(folder) / "tokenizer_config.json"
    edit_json(
        config, set_value("chat_template", [{"name": "tool", "template": "no"}, {"name": "default", "template": "yes"}])
    )
    assert read_model_folder(folder).chat_template == "yes"
    (folder / "chat_template.jinja").write_text("own")
    assert read_model_folder(folder).chat_template == "own"
    (folder / "chat_template.jinja").unlink()
    edit_json(config, set_value("chat_template", None))
    with pytest.raises(ModelError, match="has no chat_template"):
        read_model_folder(folder)
