"""A low-rank adapter in PEFT's layout: it changes the model by exactly what it says, or is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeguard.errors import ConfigError, ModelError
from edgeguard.model import manifest
from edgeguard.model.adapter_files import find_adapter
from edgeguard.model.options import Weights
from edgeguard.model.safetensors_file import read_safetensors
from tests.adapters import RANK, SHAPES, random_tensors, write_adapter
from tests.graph_runner import run_graph
from tests.reference import Reference, divergence, log_softmax
from tests.tiny import LAYERS, VOCABULARY, tiny_model

EXACT_KL, FAST_KL, HALF_KL = 1e-4, 0.02, 1e-3
TOKENS: list[int] = np.random.default_rng(1).integers(0, VOCABULARY, 40).tolist()

GGUF_NAMES = dict(
    zip(SHAPES, ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"), strict=True)
)


def reference(gguf: Path, *, scale: float, modules: tuple[str, ...] = tuple(SHAPES)) -> Reference:
    """The file's model with the random adapter of ``modules`` added to its matrices."""
    model, tensors = Reference(path=gguf), random_tensors(modules=modules)
    for layer in range(LAYERS):
        for module in modules:
            down, up = (tensors[f"base_model.model.model.layers.{layer}.{module}.lora_{part}.weight"] for part in "AB")
            model.add(f"blk.{layer}.{GGUF_NAMES[module]}", scale * up @ down)
    return model


KINDS: list[tuple[dict[str, Any], float]] = [
    ({"weight_type": "Q4_1", "accuracy_level": 0}, EXACT_KL),
    ({"weight_type": "Q4_1"}, FAST_KL),
    ({"weight_type": "Q4_0", "accuracy_level": 0}, EXACT_KL),
    ({"weight_type": "F32"}, FAST_KL),  # the head has 8 bits
    ({"weight_type": "F16", "embedding_type": "F16"}, HALF_KL),
    ({"weight_type": "Q4_1", "weights": Weights.F32}, EXACT_KL),
    ({"weight_type": "Q4_1", "accuracy_level": 0, "other_types": {"attn_v": "Q8_0", "ffn_up": "F32"}}, EXACT_KL),
]


@pytest.mark.parametrize(("kind", "limit"), KINDS, ids=str)
def test_the_built_model_is_the_file_plus_the_adapter(tmp_path: Path, kind: dict[str, Any], limit: float) -> None:
    folder = tiny_model(tmp_path, adapter=write_adapter(tmp_path / "adapter"), logits="all", **kind)
    expected = reference(tmp_path / "tiny.gguf", scale=8 / RANK).log_probabilities(TOKENS)
    plain = Reference(path=tmp_path / "tiny.gguf").log_probabilities(TOKENS)
    assert divergence(expected, log_softmax(run_graph(folder, TOKENS))).mean() <= limit
    assert divergence(expected, plain).mean() > 0.1, "an adapter that changes nothing would prove nothing"


@pytest.mark.parametrize("modules", [("self_attn.q_proj",), ("self_attn.k_proj", "self_attn.v_proj"), ("mlp.up_proj",)])
def test_an_adapter_of_some_matrices_leaves_their_neighbours(tmp_path: Path, modules: tuple[str, ...]) -> None:
    adapter = write_adapter(tmp_path / "adapter", tensors=random_tensors(modules=modules))
    folder = tiny_model(tmp_path, adapter=adapter, logits="all", accuracy_level=0)
    expected = reference(tmp_path / "tiny.gguf", scale=8 / RANK, modules=modules).log_probabilities(TOKENS)
    assert divergence(expected, log_softmax(run_graph(folder, TOKENS))).mean() <= EXACT_KL


def test_rank_stabilised_scaling_divides_by_the_root(tmp_path: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", use_rslora=True)
    folder = tiny_model(tmp_path, adapter=adapter, logits="all", accuracy_level=0)
    expected = reference(tmp_path / "tiny.gguf", scale=8 / RANK**0.5).log_probabilities(TOKENS)
    assert divergence(expected, log_softmax(run_graph(folder, TOKENS))).mean() <= EXACT_KL


def test_the_base_is_stored_as_without_an_adapter_and_the_manifest_names_both(tmp_path: Path) -> None:
    plain = tiny_model(tmp_path)
    adapted = tiny_model(tmp_path, adapter=write_adapter(tmp_path / "drive"))
    facts = manifest.verify(adapted)["adapter"]
    assert (facts["name"], facts["rank"]) == ("drive", RANK)
    assert facts["parameters"] == sum(values.size for values in random_tensors().values())
    assert manifest.verify(plain)["adapter"] is None
    assert stored(plain, "blk.0.attn_qkv") == stored(adapted, "blk.0.attn_qkv")


def test_another_adapter_is_another_folder_and_the_same_content_the_same(tmp_path: Path) -> None:
    one = tiny_model(tmp_path, adapter=write_adapter(tmp_path / "one"))
    same = tiny_model(tmp_path, adapter=write_adapter(tmp_path / "same"))
    other = tiny_model(tmp_path, adapter=write_adapter(tmp_path / "other", lora_alpha=16))
    assert one == same != other


@pytest.mark.parametrize(("kind", "step"), [("F32", 0.0), ("F16", 2**-11), ("BF16", 2**-7)])
def test_values_of_every_width_are_read(tmp_path: Path, kind: str, step: float) -> None:
    tensors = random_tensors()
    read = read_safetensors(write_adapter(tmp_path, tensors=tensors, kind=kind) / "adapter_model.safetensors")
    assert read.keys() == tensors.keys()
    for name, values in tensors.items():
        assert np.allclose(read[name], values, rtol=step, atol=1e-6)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"peft_type": "LOHA"}, r"adapter_config\.json: peft_type = 'LOHA' is not supported"),
    ({"fan_in_fan_out": True}, "fan_in_fan_out = True is not supported: its matrices are transposed"),
    ({"modules_to_save": ["lm_head"]}, "modules_to_save = .*: it replaces whole matrices: merge it with PEFT"),
    ({"use_dora": True}, "use_dora = True .* rescales"),
    ({"bias": "all"}, "bias = 'all' is not supported"),
    ({"init_lora_weights": "pissa"}, "init_lora_weights = 'pissa' .* changed base"),
    ({"rank_pattern": {"q_proj": 8}}, "rank_pattern = .* is not supported"),
    ({"r": 0}, "r = 0 is no size"),
    ({"lora_alpha": None}, "lora_alpha = None is no size"),
    ({"r": 5}, r"lora_A\.weight' is \[4, 64\], which is not of rank 5"),
]


@pytest.mark.parametrize(("keys", "said"), REFUSED)
def test_what_would_have_to_be_ignored_is_refused(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        tiny_model(tmp_path, adapter=write_adapter(tmp_path / "adapter", **keys))


def renamed(old: str, new: str) -> dict[str, Any]:
    return {name.replace(old, new): values for name, values in random_tensors().items()}


def without(ending: str) -> dict[str, Any]:
    return {name: values for name, values in random_tensors().items() if not name.endswith(ending)}


FOREIGN: list[tuple[dict[str, Any], str]] = [
    (renamed("layers.1", "layers.7"), "it changes 'blk.7.attn_q', which this model does not have"),
    (renamed("up_proj", "lm_head"), r"lora_A\.weight' belongs to no matrix that can be adapted; those are q_proj, "),
    (without("layers.0.mlp.up_proj.lora_B.weight"), "of 'blk.0.ffn_up' there is only one of lora_A and lora_B"),
    ({name: values[:, :8] if "lora_A" in name else values for name, values in random_tensors().items()},
     "'blk.0.attn_q' is 64 x 8 and the model's 64 x 64: it was trained on another model"),
    ({name: values * np.nan for name, values in random_tensors().items()}, "values that are no numbers"),
    ({}, "holds no tensors"),
]  # fmt: skip


@pytest.mark.parametrize(("tensors", "said"), FOREIGN)
def test_an_adapter_of_another_model_is_refused(tmp_path: Path, tensors: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=rf"adapter_model\.safetensors: .*{said}"):
        tiny_model(tmp_path, adapter=write_adapter(tmp_path / "adapter", tensors=tensors))


@pytest.mark.parametrize("cut", [0, 4, 40, 2_000, -1])
def test_a_damaged_file_is_refused(tmp_path: Path, cut: int) -> None:
    file = write_adapter(tmp_path) / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(ModelError, match=r"adapter_model\.safetensors: no safetensors file, or a damaged one"):
        read_safetensors(file)


def test_a_file_of_integers_is_refused(tmp_path: Path) -> None:
    file = write_adapter(tmp_path) / "adapter_model.safetensors"
    file.write_bytes(file.read_bytes().replace(b'"F32"', b'"I32"'))
    with pytest.raises(ModelError, match="a tensor of type 'I32'; supported are F32, F16, BF16"):
        read_safetensors(file)


def test_an_adapter_is_found_by_its_path_or_named_with_those_that_there_are(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "mine")
    assert find_adapter(str(folder)) == folder
    with pytest.raises(ConfigError, match="no adapter 'mine'; there are"):
        find_adapter("mine")
    (folder / "adapter_config.json").unlink()
    with pytest.raises(ModelError, match=r"adapter_config\.json: is missing; an adapter is a folder as PEFT"):
        find_adapter(str(folder))


def test_a_refused_adapter_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        tiny_model(tmp_path, adapter=write_adapter(tmp_path / "adapter", use_dora=True))
    assert not [path for path in (tmp_path / "cache" / "models").iterdir() if path.suffix != ".lock"]


def stored(folder: Path, name: str) -> bytes:
    """The bytes of one weight."""
    import onnx

    graph = onnx.load(str(folder / "model.onnx"), load_external_data=False).graph
    (tensor,) = (one for one in graph.initializer if one.name == name)
    place = {entry.key: entry.value for entry in tensor.external_data}
    begin = int(place["offset"])
    return (folder / place["location"]).read_bytes()[begin : begin + int(place["length"])]
