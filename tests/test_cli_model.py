"""``edgeguard model``: what it prints, and where."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from edgeguard.cli.model import add_parser
from tests.tiny import write_tiny_gguf


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
