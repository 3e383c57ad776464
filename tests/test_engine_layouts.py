"""Folders as other tools export them: the same weights give the same logits and the same command in every layout.

``tests/layouts/models`` was made by each tool itself (``tests/layouts/export.py``), and holds what their own runtimes
say. onnxruntime-genai is also asked here, where it is installed.
"""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.language_model import LanguageModel
from edgeguard.errors import ModelError
from edgeguard.types import Value
from tests.engine_setup import load, write_config

MODELS = Path(__file__).parent / "layouts" / "models"
EXACT = ("genai", "genai_separate", "optimum/model.onnx", "optimum/decoder_model_merged.onnx")
FLOAT16 = ("genai_fp16", "genai_positions", "optimum/model_fp16.onnx")
FOUR_BITS = ("genai_int4", "optimum/model_q4.onnx", "optimum/model_q4f16.onnx")
LAYOUTS = (*EXACT, *FLOAT16, *FOUR_BITS, "optimum/model_quantized.onnx")
NOT_ON_THE_OLDEST = pytest.mark.skipif(
    version("onnxruntime").startswith("1.23."), reason="its fusion of norms in float16 fails in onnxruntime 1.23"
)
HALF = pytest.param("optimum/model_fp16.onnx", marks=NOT_ON_THE_OLDEST)
HALVES = {"optimum/model_fp16.onnx", "optimum/model_q4f16.onnx"}
SEEN: dict[str, Value] = {"front": 2.0, "left": 1.0, "door": True, "words": "turn right"}


def greedy(model: LanguageModel, prompt: list[int], count: int) -> list[int]:
    """Free of any schema, with the whole head."""
    tokens, pending = [], prompt
    for _ in range(count):
        tokens.append(int(model.engine.run(pending).argmax()))
        pending = [tokens[-1]]
    return tokens


@pytest.fixture(scope="module")
def said() -> dict[str, list[float]]:
    """By transformers, from the weights that every folder was made of."""
    content: dict[str, list[float]] = json.loads((MODELS / "transformers.json").read_bytes())
    return content


@pytest.mark.parametrize(
    "layout", [pytest.param(one, marks=NOT_ON_THE_OLDEST) if one in HALVES else one for one in LAYOUTS]
)
def test_every_layout_says_what_its_source_says(layout: str, tmp_path: Path, said: dict[str, list[float]]) -> None:
    model = load(write_config(tmp_path), MODELS / layout, full_head=True)
    logits = np.array(model.engine.run([int(token) for token in said["prompt"]]), np.float32)
    if layout in EXACT:
        np.testing.assert_allclose(logits, said["logits"], atol=2e-4)
    else:
        # Random weights are the worst case for four bits: nothing in them is small.
        assert np.corrcoef(logits, said["logits"])[0, 1] > (0.99 if layout in FLOAT16 else 0.8)
    model.engine.cache.rewind(0)
    if layout in EXACT:
        assert greedy(model, [int(token) for token in said["prompt"]], len(said["tokens"])) == said["tokens"]


@pytest.mark.parametrize("file", ["optimum.json", "merged.json"])
def test_optimums_own_runtime_says_the_same(file: str, said: dict[str, list[float]]) -> None:
    optimum = json.loads((MODELS / file).read_bytes())
    assert (optimum["prompt"], optimum["tokens"]) == (said["prompt"], said["tokens"])


@NOT_ON_THE_OLDEST
def test_optimums_own_runtime_says_the_same_of_four_bits_in_float16(tmp_path: Path) -> None:
    """``model_q4f16.onnx``: float16 between float32 inputs and outputs, as onnx-community's script leaves them."""
    theirs = json.loads((MODELS / "q4f16.json").read_bytes())
    model = load(write_config(tmp_path), MODELS / "optimum/model_q4f16.onnx", full_head=True)
    assert {node.type for node in model.engine._session.get_outputs()} == {"tensor(float)"}
    logits = np.array(model.engine.run(theirs["prompt"]), np.float32)
    np.testing.assert_allclose(logits, theirs["logits"], atol=0.05)
    model.engine.cache.rewind(0)
    assert greedy(model, theirs["prompt"], len(theirs["tokens"])) == theirs["tokens"]


@pytest.mark.parametrize("layout", ["genai", "genai_separate", "genai_int4", "genai_positions"])
def test_onnxruntime_genai_says_the_same_of_its_own_folders(
    layout: str, tmp_path: Path, said: dict[str, list[float]]
) -> None:
    genai = pytest.importorskip("onnxruntime_genai")
    prompt = [int(token) for token in said["prompt"]]
    config = genai.Config(str(MODELS / layout))
    config.clear_providers()  # one was exported for a device that is not here
    theirs = genai.Model(config)
    parameters = genai.GeneratorParams(theirs)
    parameters.set_search_options(max_length=len(prompt) + 8, do_sample=False)
    generator = genai.Generator(theirs, parameters)
    generator.append_tokens(np.array([prompt], np.int32))
    for _ in range(8):
        if not generator.is_done():
            generator.generate_next_token()
    tokens = list(generator.get_sequence(0))[len(prompt) :]
    model = load(write_config(tmp_path), MODELS / layout, full_head=True)
    assert greedy(model, prompt, len(tokens)) == tokens


def test_the_same_command_comes_out_of_every_layout_of_the_same_weights(tmp_path: Path) -> None:
    commands = set()
    for layout in EXACT:
        model = load(write_config(tmp_path), MODELS / layout)
        decoded = model.decoder.decode(model.prompt.request(SEEN))
        assert decoded is not None
        commands.add(model.automaton.text(decoded.tokens))
    assert len(commands) == 1, commands


@pytest.mark.parametrize(
    "layout",
    ["genai", "genai_positions", "optimum/model.onnx", "optimum/decoder_model_merged.onnx", HALF],
)
def test_a_cache_can_go_back(layout: str, tmp_path: Path) -> None:
    """The prefix is kept, the rest is dropped, however long what came after it was; shared or growing."""
    model = load(write_config(tmp_path), MODELS / layout)
    model.engine.prefill(model.prompt.prefix)
    first, second = (model.prompt.request({**SEEN, "words": words}) for words in ("turn right", "go on and on and on"))
    fresh = {}
    for prompt in (first, second):
        model.engine.cache.rewind(0)
        fresh[tuple(prompt)] = np.array(model.engine.run(prompt))
    for prompt in (second, first, first, second):
        model.engine.cache.keep_common(prompt[:-1])
        logits = model.engine.run(prompt[len(model.engine.cache) :])
        np.testing.assert_allclose(logits, fresh[tuple(prompt)], atol=5e-3 if layout in FLOAT16 else 1e-4)
        assert model.engine.cache.tokens == list(prompt)


def test_a_genai_folder_may_ask_for_positions(tmp_path: Path, said: dict[str, list[float]]) -> None:
    """The builder makes such a one for DirectML; behind a cached prefix the positions are not those of a first pass."""
    assert read_model_folder(MODELS / "genai_positions").names.position_ids == "position_ids"
    model = load(write_config(tmp_path), MODELS / "genai_positions", full_head=True)
    prompt = [int(token) for token in said["prompt"]]
    model.engine.run(prompt[:5])
    logits = np.array(model.engine.run(prompt[5:]), np.float32)
    assert np.corrcoef(logits, said["logits"])[0, 1] > 0.99


def test_inputs_that_exporters_add_have_their_one_value(tmp_path: Path, said: dict[str, list[float]]) -> None:
    """``num_logits_to_keep``; the ``use_cache_branch`` of a merged decoder has its own layout above."""
    folder = Path(shutil.copytree(MODELS / "optimum", tmp_path / "model"))
    proto = onnx.load(folder / "model.onnx")
    proto.graph.input.append(helper.make_tensor_value_info("num_logits_to_keep", TensorProto.INT64, []))
    onnx.save(proto, folder / "model.onnx")
    model = load(write_config(tmp_path), folder / "model.onnx", full_head=True)
    logits = model.engine.run([int(token) for token in said["prompt"]])
    np.testing.assert_allclose(logits, said["logits"], atol=2e-4)


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """One graph, in its folder ``onnx`` as onnx-community has it."""
    folder = tmp_path / "hub"
    (folder / "onnx").mkdir(parents=True)
    for file in (MODELS / "optimum").iterdir():
        if file.suffix != ".onnx":
            shutil.copy(file, folder / file.name)
    shutil.copy(MODELS / "optimum" / "model_q4.onnx", folder / "onnx" / "model_q4.onnx")
    return folder


def test_a_hub_folder_and_its_one_file_are_the_same_model(hub: Path) -> None:
    assert (
        read_model_folder(hub) == read_model_folder(hub / "onnx") == read_model_folder(hub / "onnx" / "model_q4.onnx")
    )


def test_a_folder_that_is_itself_called_onnx_is_read(hub: Path) -> None:
    (hub / "onnx" / "model_q4.onnx").rename(hub / "model_q4.onnx")
    (hub / "onnx").rmdir()
    exported = hub.rename(hub.parent / "onnx")
    assert read_model_folder(exported).graph.path == exported / "model_q4.onnx"


def test_a_file_that_the_folders_configuration_is_not_of_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MODELS / "genai", tmp_path / "model"))
    assert read_model_folder(folder / "model.onnx") == read_model_folder(folder)
    shutil.copy(folder / "model.onnx", folder / "other.onnx")
    with pytest.raises(ModelError, match=r"other.onnx: genai_config.json beside it is that of model.onnx"):
        read_model_folder(folder / "other.onnx")


def test_a_graph_outside_the_folder_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MODELS / "genai", tmp_path / "model"))
    config = json.loads((folder / "genai_config.json").read_bytes())
    config["model"]["decoder"]["filename"] = str(MODELS / "genai" / "model.onnx")
    (folder / "genai_config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="not a file beside it"):
        read_model_folder(folder)


def test_a_hubs_own_cache_loads_as_its_users_expect(tmp_path: Path, said: dict[str, list[float]]) -> None:
    """A snapshot is a folder of links into the repository's blobs; a link to anywhere else stays refused."""
    repository = tmp_path / "models--acme--tiny"
    snapshot, blobs = repository / "snapshots" / "0a1b2c", repository / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for number, file in enumerate(sorted((MODELS / "genai").iterdir())):
        shutil.copy(file, blobs / f"blob{number}")
        (snapshot / file.name).symlink_to(Path("../../blobs") / f"blob{number}")
    model = load(write_config(tmp_path), snapshot, full_head=True)
    logits = model.engine.run([int(token) for token in said["prompt"]])
    np.testing.assert_allclose(logits, said["logits"], atol=2e-4)
    weights = snapshot / "model.onnx.data"
    shutil.copy(weights, tmp_path / "elsewhere")
    weights.unlink()
    weights.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelError, match="symbolic link"):
        read_model_folder(snapshot)


def test_several_end_tokens_are_read(hub: Path) -> None:
    (hub / "generation_config.json").write_text('{"eos_token_id": [2, 0]}')
    assert read_model_folder(hub).end_tokens == (2, 0)


def test_several_graphs_are_a_question_to_the_user(hub: Path) -> None:
    shutil.copy(MODELS / "optimum" / "model_fp16.onnx", hub / "onnx")
    with pytest.raises(ModelError, match=r"several graphs \(onnx/model_fp16.onnx, onnx/model_q4.onnx\).*point at one"):
        read_model_folder(hub)
    assert read_model_folder(hub / "onnx" / "model_fp16.onnx").graph.path.name == "model_fp16.onnx"


def test_an_encoder_with_a_decoder_is_refused(hub: Path) -> None:
    config = json.loads((hub / "config.json").read_bytes())
    (hub / "config.json").write_text(json.dumps({**config, "is_encoder_decoder": True}))
    with pytest.raises(ModelError, match="nothing but a decoder"):
        read_model_folder(hub)


def test_a_graph_that_reads_an_encoders_output_is_refused_though_its_configuration_says_nothing(hub: Path) -> None:
    proto = onnx.load(hub / "onnx" / "model_q4.onnx")
    hidden = helper.make_tensor_value_info("encoder_hidden_states", TensorProto.FLOAT, [1, 4, 64])
    proto.graph.input.append(hidden)
    onnx.save(proto, hub / "onnx" / "model_q4.onnx")
    with pytest.raises(ModelError, match="takes an encoder's output"):
        read_model_folder(hub)


@pytest.mark.parametrize("part", ["encoder", "vision", "speech"])
def test_a_genai_folder_that_is_more_than_a_decoder_is_refused(part: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MODELS / "genai", tmp_path / "model"))
    config = json.loads((folder / "genai_config.json").read_bytes())
    config["model"][part] = {"filename": f"{part}.onnx"}
    (folder / "genai_config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=rf"genai_config.json: model.{part}: only models that are nothing but a deco"):
        read_model_folder(folder)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (lambda name: "past" not in name, "no cache of keys and values.*text-generation-with-past"),
        (lambda name: name != "attention_mask", "attention_mask missing"),
    ],
)
def test_a_graph_without_what_a_decoder_needs_is_refused(hub: Path, keep, message: str) -> None:  # type: ignore[no-untyped-def]
    proto = onnx.load(hub / "onnx" / "model_q4.onnx")
    kept = [one for one in proto.graph.input if keep(one.name)]
    del proto.graph.input[:]
    proto.graph.input.extend(kept)
    onnx.save(proto, hub / "onnx" / "model_q4.onnx")
    with pytest.raises(ModelError, match=message):
        read_model_folder(hub)
