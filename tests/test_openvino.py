"""A second provider, for real: OpenVINO on the CPU, where its onnxruntime is installed (``.ci/run`` has one apart)."""

from __future__ import annotations

import stat
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest

from edgeguard.bench.compile import compile_models
from edgeguard.config import load_config
from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.head import whole_head
from edgeguard.engine.language_model import LanguageModel
from edgeguard.engine.providers import find_provider
from edgeguard.engine.session import Opened, open_session
from edgeguard.errors import ConfigError, ProviderError
from edgeguard.model.build import build
from edgeguard.model.options import Weights
from edgeguard.runtime.model_choice import for_provider
from tests.engine_setup import apart, load, observation, write_config
from tests.reference import Reference, divergence, log_softmax
from tests.tiny import tiny_model, tiny_recipe, write_tiny_gguf

OPENVINO = find_provider("openvino")
INSTALLED = any(one.name == OPENVINO.package for one in distributions())
pytestmark = pytest.mark.skipif(not INSTALLED, reason="this onnxruntime has no OpenVINO")


def built_for_openvino(folder: Path, **options: Weights) -> Path:
    """What ``edgeguard model build tiny --for openvino`` makes."""
    write_tiny_gguf(folder / "tiny.gguf")
    recipe = for_provider(tiny_recipe(folder / "tiny.gguf", logits="all"), OPENVINO)
    return build(replace(recipe, build=replace(recipe.build, **options)), cache_dir=folder / "cache")


def opened(folder: Path, **options: str) -> Opened:
    model = read_model_folder(folder)
    return apart(
        lambda: open_session(
            folder=model,
            head=whole_head(model, why="as asked"),
            provider=OPENVINO,
            threads=2,
            provider_options=options,
            session_options={},
        )
    )


def loaded(folder: Path, model: Path, provider: str, *, more: str = "") -> LanguageModel:
    change = f'folder = "./model"\nprovider = "{provider}"\n{more}'
    return load(write_config(folder, ('folder = "./model"', change)), model)


def test_the_graph_that_is_built_for_it_is_placed_on_it_to_the_last_node(tmp_path: Path) -> None:
    assert opened(built_for_openvino(tmp_path)).placement == "openvino, all of it"


def test_it_computes_what_the_file_says(tmp_path: Path) -> None:
    """It quantises activations to int8 as accuracy level 4 does, so near is near enough."""
    model = loaded(tmp_path, built_for_openvino(tmp_path), "openvino")
    tokens = [5 + at % 200 for at in range(40)]
    expected = Reference(path=tmp_path / "tiny.gguf").log_probabilities(tokens)
    model.engine.run(tokens)
    columns = list(model.engine.head.tokens or range(expected.shape[1]))
    said = np.array([model.engine.earlier(back)[: len(columns)] for back in reversed(range(40))])
    wanted = log_softmax(expected[:, columns])
    assert divergence(wanted, log_softmax(said)).mean() < 0.02


def test_in_floats_it_gives_the_same_commands_as_the_cpu(tmp_path: Path) -> None:
    folder = built_for_openvino(tmp_path, weights=Weights.F32)
    commands = []
    for provider in ("openvino", "cpu"):
        model = loaded(tmp_path, folder, provider)
        decoded = [model.decoder.decode(model.prompt.request(observation(words=words))) for words in WORDS]
        commands.append([one and one.tokens for one in decoded])
    assert commands[0] == commands[1]
    assert None not in commands[0]


@pytest.mark.parametrize("shapes", ["sizes", "one"])
def test_in_fixed_shapes_as_its_npu_wants_them_it_gives_the_same_commands(shapes: str, tmp_path: Path) -> None:
    folder = built_for_openvino(tmp_path, weights=Weights.F32)
    commands = []
    for more in ("", f'shapes = "{shapes}"'):
        model = loaded(tmp_path, folder, "openvino", more=more)
        model.engine.prefill(model.prompt.prefix)
        decoded = [model.decoder.decode(model.prompt.request(observation(words=words))) for words in WORDS]
        commands.append([one and one.tokens for one in decoded])
        assert model.placement == "openvino, all of it"
    assert commands[0] == commands[1]


def test_what_it_has_compiled_is_kept_and_a_stale_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEGUARD_CACHE", str(tmp_path / "cache"))
    folder = built_for_openvino(tmp_path)
    change = f'folder = "{folder}"\nprovider = "openvino"'
    config = write_config(tmp_path, ('folder = "./model"', change))
    (directory,) = apart(lambda: compile_models(load_config(config)))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [file.suffix for file in directory.iterdir() if file.name != "manifest.json"] == [".blob"]
    assert [file.suffix for file in directory.parent.glob(".*")] == [".lock"], "nothing half-made is left"
    blob = next(directory.glob("*.blob"))
    for _ in range(2):  # the second start finds it as the first one left it
        model = load(config, folder)
        assert model.decoder.decode(model.prompt.request(observation())) is not None
    assert len(list(directory.iterdir())) == 2

    other = write_config(tmp_path, ('folder = "./model"', change + "\nthreads = 1"))
    with pytest.raises(ProviderError, match=r"compiled for something else \(threads: .* -> 1\); 'edgeguard model comp"):
        load(other, folder)
    blob.write_bytes(b"")
    with pytest.raises(ProviderError, match="missing or empty"):
        load(write_config(tmp_path, ('folder = "./model"', change)), folder)


WORDS = ("go on", "turn left", "stop", "back", "left again and then go to the door", "go on")


def test_a_graph_that_it_runs_only_in_part_is_refused_with_the_nodes_and_the_command(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"2 GroupQueryAttention on CPU.*--for openvino"):
        opened(tiny_model(tmp_path, embedding_type="F16"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"device_typ": "CPU"}, ConfigError, "did you mean 'device_type'"),
        ({"device_type": "TPU"}, ProviderError, "runs no node of the graph.*is the device there"),
    ],
)
def test_an_option_that_means_nothing_to_it_stops_the_start(
    tmp_path: Path, options: dict[str, str], error: type[Exception], message: str
) -> None:
    folder = built_for_openvino(tmp_path)
    with pytest.raises(error, match=message):
        opened(folder, **options)
