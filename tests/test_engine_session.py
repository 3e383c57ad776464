"""Sessions that run where they were told to, and every way in which they would not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from edgeguard.answer import parse_answer
from edgeguard.config import load_config
from edgeguard.engine.cache import ELEMENT_TYPES
from edgeguard.engine.folder import ModelFolder, read_model_folder
from edgeguard.engine.head import whole_head
from edgeguard.engine.placement import RECORD_ASSIGNMENT, Placed, audit, profiled, recorded, records_assignment
from edgeguard.engine.probe import Finding, survey
from edgeguard.engine.provider import HEAVY_OPERATORS, Provider
from edgeguard.engine.provider_table import PROVIDERS
from edgeguard.engine.providers import find_provider, provider_of
from edgeguard.engine.session import Opened, allowed_threads, open_session
from edgeguard.engine.session_options import SESSION_DEFAULTS, SESSION_KEYS, chosen_options
from edgeguard.errors import ConfigError, EdgeguardError, ModelError, ProviderError
from edgeguard.extras import install_command
from edgeguard.model.build import build
from edgeguard.runtime.model_choice import for_provider
from tests.engine_setup import apart, load, observation, write_config
from tests.tiny import LAYERS, tiny_model, tiny_recipe, write_tiny_gguf


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """A copy that no manifest guards."""
    copy = Path(shutil.copytree(built, tmp_path / "model"))
    (copy / "manifest.json").unlink()
    return copy


def open_on(
    provider: Provider,
    folder: ModelFolder,
    *,
    session: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    threads: int = 1,
) -> Opened:
    return apart(
        lambda: open_session(
            folder=folder,
            head=whole_head(folder, why="as asked"),
            provider=provider,
            threads=threads,
            provider_options=options or {},
            session_options=session or {},
        )
    )


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    return {one.name: one for one in survey(PROVIDERS)}


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)
def test_every_row_of_the_table_runs_its_graph_where_it_is_usable(
    row: Provider, findings: dict[str, Finding], tmp_path: Path
) -> None:
    if not findings[row.name].usable:
        pytest.skip(findings[row.name].reason)
    write_tiny_gguf(tmp_path / "tiny.gguf")
    folder = build(for_provider(tiny_recipe(tmp_path / "tiny.gguf"), row), cache_dir=tmp_path / "cache")
    model = load(write_config(tmp_path, ('folder = "./model"', f'folder = "./model"\nprovider = "{row.name}"')), folder)
    assert model.placement.startswith(row.name)
    model.warm_up(lambda *_: None)
    decoded = model.decoder.decode(model.prompt.request(observation()))
    assert decoded is not None
    parse_answer(model.automaton.text(decoded.tokens), fields=model.fields)


def test_names_and_smallest_passes_of_the_table_make_sense() -> None:
    names = [row.name for row in PROVIDERS]
    assert len(set(names)) == len(names)
    assert all(row.smallest_pass >= 1 and row.heavy_operators for row in PROVIDERS)


@pytest.mark.parametrize("row", PROVIDERS, ids=lambda row: row.name)
def test_a_provider_can_hold_the_cache_of_the_graph_that_is_built_for_it(row: Provider) -> None:
    assert set(row.kv_types) <= set(ELEMENT_TYPES)
    assert row.kv_device == "cpu" or row.graph.attention == "GroupQueryAttention", "a cache that grows does so there"


def test_an_unknown_provider_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(ProviderError, match=r"no execution provider 'CPU'.*known: cpu|did you mean 'cpu'"):
        find_provider("cpuu")
    with pytest.raises(ProviderError, match="known: cpu"):
        find_provider("quantum")


def test_a_provider_that_this_onnxruntime_lacks_is_an_error_not_a_fallback(built: Path) -> None:
    missing = replace(PROVIDERS[0], name="cuda", ort_name="CUDAExecutionProvider", extra="gpu")
    with pytest.raises(ProviderError, match=r"has no CUDAExecutionProvider.*pip install .*\[gpu\]"):
        open_on(missing, read_model_folder(built))


def test_without_onnxruntime_the_extra_is_named(built: Path, tmp_path: Path) -> None:
    """In a process of its own, where the module cannot be found."""
    script = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from edgeguard.engine.providers import find_provider\n"
        "from edgeguard.engine.session import import_runtime\n"
        "from edgeguard.errors import MissingExtraError\n"
        "try: import_runtime(find_provider('cpu'))\n"
        "except MissingExtraError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert install_command("cpu") in said


def test_telemetry_is_off_before_the_import() -> None:
    script = (
        "import os, sys\n"
        "from edgeguard.engine.providers import find_provider\n"
        "import edgeguard.engine.session as session\n"
        "assert 'onnxruntime' not in sys.modules\n"
        "session.import_runtime(find_provider('cpu'))\n"
        "print(os.environ['ORT_DISABLE_TELEMETRY'])\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert said.strip() == "1"


def test_threads_are_the_cores_this_process_may_use() -> None:
    script = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    script += "from edgeguard.engine.session import allowed_threads; print(allowed_threads(0), allowed_threads(3))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["1", "3"]
    assert allowed_threads(0) == len(os.sched_getaffinity(0))


def test_session_options_are_set_and_win_over_the_defaults(built: Path) -> None:
    opened = open_on(PROVIDERS[0], read_model_folder(built), session={"session.dynamic_block_base": "8"}, threads=2)
    options = opened.session.get_session_options()
    expected = {**SESSION_DEFAULTS, "session.dynamic_block_base": "8"}
    assert {key: options.get_session_config_entry(key) for key in expected} == expected
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
    assert not options.enable_mem_pattern


def test_an_unknown_session_key_is_an_error_with_the_nearest_one(built: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'session\.dynamic_block_base'"):
        open_on(PROVIDERS[0], read_model_folder(built), session={"session.dynamic_block_size": "4"})
    assert not any("file" in key or "save" in key for key in SESSION_KEYS), "none reads or writes other files"


def change_graph(folder: Path, *, ir_version: int | None = None, opset: int | None = None) -> None:
    proto = onnx.load(folder / "model.onnx", load_external_data=False)
    if ir_version is not None:
        proto.ir_version = ir_version
    if opset is not None:
        proto.opset_import[0].version = opset
    (folder / "model.onnx").write_bytes(proto.SerializeToString())


@pytest.mark.parametrize(("ir_version", "opset"), [(99, None), (None, 99)])
def test_a_graph_that_is_too_new_says_which_versions_it_has(
    folder: Path, ir_version: int | None, opset: int | None
) -> None:
    change_graph(folder, ir_version=ir_version, opset=opset)
    model = read_model_folder(folder)
    with pytest.raises(ModelError, match="99") as refusal:
        open_on(PROVIDERS[0], model)
    assert f"IR version {model.graph.ir_version}, opset {model.graph.opset}" in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("num_hidden_layers", 1, r"they differ in past_key_values\.1\.key"),
        ("num_key_value_heads", 4, "heads and their size"),
        ("head_size", 32, "heads and their size"),
    ],
)
def test_a_graph_of_another_model_is_refused(folder: Path, key: str, value: int, message: str) -> None:
    content = json.loads((folder / "genai_config.json").read_bytes())
    content["model"]["decoder"][key] = value
    (folder / "genai_config.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match=message):
        open_on(PROVIDERS[0], read_model_folder(folder))


def test_a_vocabulary_of_another_size_is_refused(built: Path) -> None:
    with pytest.raises(ModelError, match="360 logits for a vocabulary of 400"):
        open_on(PROVIDERS[0], replace(read_model_folder(built), vocabulary=400))


def test_a_cache_of_a_type_that_the_provider_does_not_take_is_refused(built: Path) -> None:
    half = replace(PROVIDERS[0], kv_types=("tensor(float16)",))
    with pytest.raises(ProviderError, match=r"takes only tensor\(float16\)"):
        open_on(half, read_model_folder(built))


def test_the_placement_is_said_in_words(built: Path) -> None:
    assert open_on(PROVIDERS[0], read_model_folder(built)).placement == "cpu, all of it"


def test_both_ways_to_know_the_placement_agree_on_where_the_time_goes(built: Path, tmp_path: Path) -> None:
    """The record of newer releases, and the one profiled run of older ones; fused nodes have names of their own."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "pass")
    with_record = records_assignment(onnxruntime)
    if with_record:
        options.add_session_config_entry(RECORD_ASSIGNMENT, "1")
    session = onnxruntime.InferenceSession(built / "model.onnx", options, providers=["CPUExecutionProvider"])
    placed = profiled(session, read_model_folder(built))
    assert not list(tmp_path.iterdir()), "the profile is removed"
    heavy = Counter(one.operator for one in placed if one.operator in HEAVY_OPERATORS)
    assert heavy["GroupQueryAttention"] == LAYERS
    assert heavy["MatMulNBits"] > LAYERS
    if with_record:
        assert heavy == Counter(one.operator for one in recorded(session) if one.operator in HEAVY_OPERATORS)
    other = replace(PROVIDERS[0], name="other", ort_name="OtherExecutionProvider")
    one_there = Placed(operator="Add", node="x", where="OtherExecutionProvider")
    for nodes in (placed, recorded(session) if with_record else placed):
        with pytest.raises(ProviderError, match=r"2 GroupQueryAttention on CPUExecutionProvider \(.+--for other"):
            audit([*nodes, one_there], other)
        with pytest.raises(ProviderError, match="runs no node"):
            audit(nodes, other)


def test_shape_arithmetic_may_stay_on_the_cpu_and_is_named() -> None:
    row = replace(PROVIDERS[0], name="npu", ort_name="NpuExecutionProvider")
    heavy = Placed(operator="MatMul", node="a", where="NpuExecutionProvider")
    light = Placed(operator="Gather", node="b", where="CPUExecutionProvider")
    assert audit([heavy, light], row) == "npu, and 1 Gather on CPUExecutionProvider"
    with pytest.raises(ProviderError, match="npu runs no node"):
        audit([light], row)


def test_an_option_that_the_provider_does_not_know_is_an_error_before_anything_is_opened() -> None:
    openvino = find_provider("openvino")
    with pytest.raises(ConfigError, match="openvino has no option 'cache_dri'; did you mean 'cache_dir'"):
        chosen_options(openvino, {"cache_dri": "/tmp"}, threads=2)
    chosen = chosen_options(openvino, {"device_type": "GPU"}, threads=2)
    assert (chosen["device_type"], chosen["num_of_threads"]) == ("GPU", "2")


def test_an_option_that_a_provider_of_unknown_options_does_not_report_back_is_an_error(built: Path) -> None:
    with pytest.raises(ProviderError, match="cpu did not take warp_speed; what it takes: nothing"):
        open_on(PROVIDERS[0], read_model_folder(built), options={"warp_speed": "9"})


OWN = """
provider = "npu"

[[provider]]
name = "npu"
execution_provider = "NpuExecutionProvider"
library = "libnpu.so"
smallest_pass = 2
"""


def test_a_row_of_the_users_own_is_a_provider_like_any_other(built: Path, tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path, ('folder = "./model"', 'folder = "./model"' + OWN)))
    row = provider_of(config)
    assert (row.name, row.smallest_pass, row.graph.attention) == ("npu", 2, "plain")
    with pytest.raises(ProviderError, match=r"libnpu.so does not exist"):
        open_on(row, read_model_folder(built))
    (tmp_path / "libnpu.so").write_text("no library")
    with pytest.raises(ProviderError, match=r"npu: libnpu.so cannot be loaded: .*libnpu.so: "):
        open_on(row, read_model_folder(built))


def test_a_library_beside_the_configuration_is_found_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name without a folder would be looked for beside onnxruntime."""
    write_config(tmp_path, ('folder = "./model"', 'folder = "./model"' + OWN))
    monkeypatch.chdir(tmp_path)
    assert provider_of(load_config(Path("robot.toml"))).library == str(tmp_path / "libnpu.so")


def test_the_table_entry_in_the_configuration_is_the_one_that_is_used(built: Path, tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path, ('folder = "./model"', 'folder = "./model"\nprovider = "tpu"')))
    with pytest.raises(EdgeguardError, match="no execution provider 'tpu'"):
        load(config, built)


def test_a_loaded_model_answers_with_finite_logits(built: Path, tmp_path: Path) -> None:
    model = load(write_config(tmp_path), built)
    assert np.isfinite(model.engine.run([1, 2, 3])).all()
    assert model.identity["provider"] == "cpu"
    assert model.identity["threads"] == str(allowed_threads(0))
