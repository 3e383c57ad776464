"""``edgeguard model``: what it prints, and where."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from edgeguard.cli.model import add_parser
from edgeguard.errors import ConfigError, ModelError
from edgeguard.model.build import build
from edgeguard.model.options import GraphOptions, Weights
from edgeguard.places import compiled_directory
from tests.adapters import write_adapter
from tests.robot import CONFIG
from tests.tiny import tiny_recipe, write_tiny_gguf


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    path = tmp_path / "tiny.toml"
    path.write_text('name = "tiny"\nsummary = "random weights"\nlicence = "Apache-2.0"\n[source]\npath = "tiny.gguf"\n')
    return path


def test_build_prints_the_folder_and_inspect_reads_it(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = str(recipe.parent / "cache")
    assert run("build", str(recipe), "--cache", cache) == 0
    folder = capsys.readouterr().out.strip()
    assert Path(folder).parent == recipe.parent / "cache" / "models"
    assert run("build", str(recipe), "--cache", cache, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"recipe": "tiny", "folder": folder}
    assert run("inspect", folder) == 0
    said = capsys.readouterr().out
    for words in ("llama, 2 layers", "bytes per pass", "512 bytes", "int4, blocks of 32", "hashes checked"):
        assert words in said
    assert run("inspect", folder, "--json") == 0
    assert json.loads(capsys.readouterr().out)["kv_bytes_per_token"] == 512


def test_inspect_finds_what_has_been_built_by_its_name(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = ("--cache", str(recipe.parent / "cache"))
    variant = f"{recipe}:q8"
    with pytest.raises(ModelError, match=rf"has not been built: edgeguard model build --cache .*/cache {variant}$"):
        run("inspect", variant, *cache)
    assert run("build", variant, *cache) == 0
    folder = capsys.readouterr().out.strip()
    assert run("inspect", variant, "--json", *cache) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == folder


def test_help_names_the_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("build", "--help")
    assert ended.value.code == 0
    assert "smollm2-135m" in capsys.readouterr().out


def run(*words: str) -> int:
    parser = argparse.ArgumentParser(prog="edgeguard")
    add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["model", *words])
    return int(arguments.func(arguments))


def test_build_takes_weights_and_an_adapter_and_says_what_there_is(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = ("--cache", str(recipe.parent / "cache"))
    adapter = write_adapter(recipe.parent / "drive")
    assert run("build", str(recipe), "--weights", "q8", "--head", "f32", "--adapter", str(adapter), *cache) == 0
    by_options = capsys.readouterr().out.strip()
    assert run("build", f"{recipe}:q8,head=f32+{adapter}", *cache) == 0
    assert capsys.readouterr().out.strip() == by_options
    assert run("inspect", by_options) == 0
    said = capsys.readouterr().out
    for words in ("int8, blocks of 32", "float32, adapter", "drive, rank 4"):
        assert words in said


def test_list_names_what_there_is_and_prune_removes_what_nobody_finds(
    recipe: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = recipe.parent / "cache"
    monkeypatch.setenv("EDGEGUARD_CACHE", str(cache))
    options = ("--cache", str(cache))
    assert run("build", str(recipe), *options) == 0
    kept = Path(capsys.readouterr().out.strip())
    assert run("build", f"{recipe}:q8,head=f16", *options) == 0
    old = Path(capsys.readouterr().out.strip())
    compiled = compiled_directory(old, "openvino")
    compiled.mkdir(parents=True)
    assert run("list", *options) == 0
    said = capsys.readouterr().out
    assert "tiny:q8,head=f16" in said
    assert "nobody" not in said
    facts = json.loads((old / "manifest.json").read_text())
    (old / "manifest.json").write_text(json.dumps({**facts, "builder": "an earlier one"}))
    (kept.parent / ".tiny-interrupted" / "raw").mkdir(parents=True)
    config = recipe.parent / "robot.toml"
    config.write_text(f'[model]\nfolder = "{old}"\n{CONFIG}')
    assert run("prune", "--json", *options, str(config)) == 0
    assert [model["name"] for model in json.loads(capsys.readouterr().out)["models"]] == ["not finished"]
    assert run("prune", *options) == 0
    assert "would be removed: edgeguard model prune --yes" in capsys.readouterr().out
    assert old.exists()
    assert run("prune", "--yes", "--json", *options) == 0
    names = [model["name"] for model in json.loads(capsys.readouterr().out)["models"]]
    assert names == ["not finished", "tiny:q8,head=f16"]
    assert [path for path in kept.parent.iterdir() if path.is_dir()] == [kept]
    assert not compiled.exists(), "nor would anybody read what it was compiled to"


NO_VARIANTS = [
    ("tiny:q5", "'q5' is no kind of weights; there are f32, f16, q8, q4, q4-exact"),
    ("tiny:q8,tail=q8", "'tail=q8' is neither head=WEIGHTS nor embedding=WEIGHTS"),
    ("smollm2-135m+nothing", "no adapter 'nothing'; there are"),
    ("smollm3", "no recipe 'smollm3' .did you mean 'smollm2-135m'"),
]


@pytest.mark.parametrize(("name", "said"), NO_VARIANTS)
def test_a_variant_that_there_is_not_is_named_with_those_that_there_are(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        run("build", name)


def test_weights_that_the_file_does_not_have_are_refused_by_tensor(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", weight_type="Q8_0")
    recipe = replace(tiny_recipe(tmp_path / "tiny.gguf"), build=GraphOptions(weights=Weights.Q4_EXACT))
    with pytest.raises(ModelError, match=r"tensor 'blk\.0\.attn_q': q4-exact carries 4-bit blocks over"):
        build(recipe, cache_dir=tmp_path / "cache")
