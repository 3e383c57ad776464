"""A third provider, for real but for its silicon: onnxruntime-qnn has a simulator of its NPU (``.ci/run``).

It takes the same library, graph and fixed shapes, and is hundreds of times slower than a CPU, so that nothing here is
timed. The row of the table refuses it, because it is no device; a row of the user's own does not know that.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from edgeguard.bench.compile import compile_models
from edgeguard.config import load_config
from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.head import whole_head
from edgeguard.engine.providers import find_provider
from edgeguard.engine.session import open_session
from edgeguard.errors import ProviderError
from edgeguard.model.build import build
from edgeguard.runtime.model_choice import for_provider
from tests.engine_setup import apart, load, observation, write_config
from tests.test_engine_layouts import MODELS
from tests.tiny import tiny_recipe, write_tiny_gguf

qnn = pytest.importorskip("onnxruntime_qnn")
QNN = find_provider("qnn")
WORDS = ("go on", "turn left", "stop")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``edgeguard model build tiny --for qnn`` makes."""
    folder = tmp_path_factory.mktemp("built")
    write_tiny_gguf(folder / "tiny.gguf")
    return build(for_provider(tiny_recipe(folder / "tiny.gguf"), QNN), cache_dir=folder / "cache")


def simulated(folder: Path, model: Path) -> Path:
    own = f"""folder = "{model}"
provider = "simulated"
shapes = "one"
provider_options = {{ backend_type = "htp" }}

[[provider]]
name = "simulated"
execution_provider = "{QNN.ort_name}"
library = "{qnn.get_library_path()}"
activations = "float16"
compiles = true
"""
    return write_config(folder, ('folder = "./model"', own))


def test_the_whole_graph_is_on_it_in_one_shape_and_gives_the_commands_of_the_cpu(built: Path, tmp_path: Path) -> None:
    npu = load(simulated(tmp_path, built), built)
    cpu = load(write_config(tmp_path), built)
    assert npu.placement == "simulated, all of it"
    (size,) = npu.pass_sizes
    npu.engine.prefill(npu.prompt.prefix)
    for words in WORDS:
        answers = []
        for model in (npu, cpu):
            model.engine.begin()
            decoded = model.decoder.decode(model.prompt.request(observation(words=words)))
            assert decoded is not None
            answers.append(decoded)
        assert answers[0].tokens == answers[1].tokens
        assert answers[0].confidence == pytest.approx(answers[1].confidence, rel=0.02)
        assert {one.k for one in npu.engine.passes} == {size}


def test_a_graph_that_it_runs_only_in_part_is_refused_with_the_nodes(built: Path, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"what it was asked for: 2 GroupQueryAttention on CPUExecutionProvider"):
        load(simulated(tmp_path, MODELS / "genai_fp16"), MODELS / "genai_fp16")


def test_a_graph_that_other_tools_have_exported_runs_on_it(tmp_path: Path) -> None:
    model = load(simulated(tmp_path, MODELS), MODELS / "optimum" / "model_fp16.onnx")
    assert model.placement == "simulated, all of it"


def test_what_it_has_compiled_is_kept_is_what_runs_and_a_stale_one_is_refused(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEGUARD_CACHE", str(tmp_path / "cache"))
    config = simulated(tmp_path, built)
    (directory,) = apart(lambda: compile_models(load_config(config)))
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {file.suffix for file in directory.iterdir()} == {".json", ".onnx", ".bin"}
    before = load(config, built)
    decoded = before.decoder.decode(before.prompt.request(observation()))
    assert before.placement == "simulated, all of it"
    assert decoded is not None
    fresh = load(write_config(tmp_path), built)
    again = fresh.decoder.decode(fresh.prompt.request(observation()))
    assert again is not None
    assert decoded.tokens == again.tokens
    longer = simulated(tmp_path, built)
    longer.write_text(longer.read_text().replace("max_chars = 40", "max_chars = 80"))
    with pytest.raises(ProviderError, match=r"compiled for something else \(shapes: .*; 'edgeguard model compile"):
        load(longer, built)


def test_the_provider_of_the_table_refuses_a_simulation(built: Path) -> None:
    model = read_model_folder(built)
    with pytest.raises(ProviderError, match=r"no device: there is no /dev/fastrpc-cdsp\*"):
        open_session(
            folder=model, head=whole_head(model, why="as asked"), provider=QNN, threads=1,
            provider_options={}, session_options={},
        )  # fmt: skip
