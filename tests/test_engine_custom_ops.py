"""Code that comes with a model is loaded where the configuration lists it with its hash, and nowhere else."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from edgeguard.errors import ConfigError, ModelError
from tests.engine_setup import load, write_config
from tests.test_engine_layouts import MODELS

COMPILER = shutil.which("gcc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no gcc to make a library with")


def listing(folder: Path, library: Path, *, sha256: str | None = None) -> Path:
    digest = sha256 or hashlib.sha256(library.read_bytes()).hexdigest()
    custom = f'[[model.custom_ops]]\nlibrary = "{library}"\nsha256 = "{digest}"\n\n[prompt]'
    return write_config(folder, ("[prompt]\n", f"{custom}\n"))


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library without any operator that leaves a mark where it has been loaded."""
    source, built = tmp_path / "ops.c", tmp_path / "libops.so"
    source.write_text(
        "#include <stdio.h>\n"
        f'__attribute__((constructor)) static void loaded(void) {{ fclose(fopen("{tmp_path}/mark", "w")); }}\n'
        "void *RegisterCustomOps(void *options, const void *api) { return 0; }\n"
    )
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    return built


@needs_compiler
def test_what_is_listed_with_its_hash_is_loaded_and_belongs_to_the_identity(library: Path, tmp_path: Path) -> None:
    model = load(listing(tmp_path, library), MODELS / "genai")
    assert (tmp_path / "mark").exists()
    assert model.identity["custom_ops"] == hashlib.sha256(library.read_bytes()).hexdigest()[:16]
    assert "custom_ops" not in load(write_config(tmp_path), MODELS / "genai").identity


@needs_compiler
def test_a_library_that_has_changed_is_not_loaded(library: Path, tmp_path: Path) -> None:
    config = listing(tmp_path, library)
    with library.open("ab") as content:
        content.write(b"\0")
    with pytest.raises(ModelError, match=r"libops.so: its SHA-256 is [0-9a-f]{64}, not the listed one"):
        load(config, MODELS / "genai")
    assert not (tmp_path / "mark").exists()


def test_a_library_that_is_missing_or_none_is_named(tmp_path: Path) -> None:
    text = tmp_path / "libops.so"
    text.write_text("no library")
    with pytest.raises(ModelError, match=r"model.custom_ops: .*libops.so: cannot be loaded: "):
        load(listing(tmp_path, text), MODELS / "genai")
    config = listing(tmp_path, text)
    text.unlink()
    with pytest.raises(ModelError, match=r"model.custom_ops: .*libops.so: cannot be read \(No such file"):
        load(config, MODELS / "genai")


def test_a_listing_without_a_hash_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    config = write_config(tmp_path, ("[prompt]\n", '[[model.custom_ops]]\nlibrary = "libops.so"\n[prompt]\n'))
    with pytest.raises(ConfigError, match=r"model.custom_ops\[0\].sha256"):
        load(config, MODELS / "genai")


@needs_compiler
def test_a_model_that_asks_for_code_gets_it_only_where_that_is_listed(library: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(MODELS / "genai", tmp_path / "model"))
    settings = json.loads((folder / "genai_config.json").read_bytes())
    settings["model"]["decoder"]["session_options"]["custom_ops_library"] = "libops.so"
    (folder / "genai_config.json").write_text(json.dumps(settings))
    shutil.copy(library, folder)
    with pytest.raises(ModelError, match=r"code that comes with a model is not run, unless .* lists libops.so with"):
        load(write_config(tmp_path), folder)
    assert not (tmp_path / "mark").exists()
    load(listing(tmp_path, folder / "libops.so"), folder)
    assert (tmp_path / "mark").exists()


def test_a_real_librarys_operator_computes(tmp_path: Path) -> None:
    """onnxruntime-extensions' ``NegPos``, the negative and the positive part of a tensor, whose sum is the tensor."""
    extensions = pytest.importorskip("onnxruntime_extensions")
    folder = Path(shutil.copytree(MODELS / "optimum", tmp_path / "model"))
    graph = onnx.load(folder / "model.onnx")
    for node in graph.graph.node:
        node.output[:] = ["whole" if name == "logits" else name for name in node.output]
    graph.graph.node.append(helper.make_node("NegPos", ["whole"], ["negative", "positive"], domain="ai.onnx.contrib"))
    graph.graph.node.append(helper.make_node("Add", ["negative", "positive"], ["logits"]))
    graph.opset_import.append(helper.make_opsetid("ai.onnx.contrib", 1))
    onnx.save(graph, folder / "with_parts.onnx")
    with pytest.raises(ModelError, match="NegPos"):
        load(write_config(tmp_path), folder / "with_parts.onnx")
    plain = load(write_config(tmp_path), folder / "model.onnx", full_head=True)
    config = listing(tmp_path, Path(extensions.get_library_path()))
    parts = load(config, folder / "with_parts.onnx", full_head=True)
    np.testing.assert_array_equal(*(np.array(model.engine.run([5, 9, 17])) for model in (plain, parts)))
