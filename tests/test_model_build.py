"""A build happens once, leaves nothing half-made, and refuses what it could only convert by guessing."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gguf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeguard.errors import FetchError, ModelError, TokenizerError
from edgeguard.model import manifest
from edgeguard.model.build import build, built_folder
from edgeguard.model.gguf_source import GgufSource
from edgeguard.model.options import GraphOptions
from edgeguard.model.recipe import PathSource, Recipe
from edgeguard.places import default_cache_dir
from tests.real import real_model
from tests.tiny import tiny_recipe, write_tiny_gguf

ROOT = Path(__file__).parent.parent
FILES = {"genai_config.json", "model.onnx", "model.onnx.data", "tokenizer.json", "tokenizer_config.json"}


def test_the_folder_has_the_files_of_its_manifest_and_nothing_else(tmp_path: Path) -> None:
    folder = build(recipe_for(tmp_path), cache_dir=tmp_path / "cache")
    content = manifest.verify(folder)
    assert {path.name for path in folder.iterdir()} == FILES | {"manifest.json"}
    assert content["files"].keys() == FILES
    assert content["vocabulary"] == len(json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"])
    assert content["source"]["sha256"] == manifest.sha256_of(tmp_path / "tiny.gguf")


def test_progress_goes_from_nothing_to_all_in_every_phase(tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    build(recipe_for(tmp_path), cache_dir=tmp_path / "cache", progress=lambda *call: calls.append(call))
    assert list(dict.fromkeys(phase for phase, _, _ in calls)) == ["fetch", "read", "convert"]
    for phase in ("fetch", "read", "convert"):
        steps = [(done, total) for name, done, total in calls if name == phase]
        assert steps == [(done, steps[0][1]) for done in range(steps[0][1] + 1)]


def test_a_second_build_does_nothing(tmp_path: Path) -> None:
    recipe, cache = recipe_for(tmp_path), tmp_path / "cache"
    folder = build(recipe, cache_dir=cache)
    made = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    calls: list[str] = []
    assert build(recipe, cache_dir=cache, progress=lambda phase, *_: calls.append(phase)) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == made
    assert calls == []


def test_another_content_or_option_is_another_folder(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    recipe = recipe_for(tmp_path)
    folders = [build(recipe, cache_dir=cache)]
    folders.append(build(replace(recipe, build=GraphOptions(accuracy_level=0)), cache_dir=cache))
    write_tiny_gguf(tmp_path / "tiny.gguf", seed=1)
    folders.append(build(recipe, cache_dir=cache))
    assert len(set(folders)) == 3


def test_a_folder_that_lost_a_file_is_built_again(tmp_path: Path) -> None:
    recipe, cache = recipe_for(tmp_path), tmp_path / "cache"
    folder = build(recipe, cache_dir=cache)
    (folder / "model.onnx.data").unlink()
    with pytest.raises(ModelError, match=r"model\.onnx\.data: is missing"):
        manifest.verify(folder)
    assert build(recipe, cache_dir=cache) == folder
    manifest.verify(folder)


def test_a_changed_file_is_named(tmp_path: Path) -> None:
    folder = build(recipe_for(tmp_path), cache_dir=tmp_path / "cache")
    with (folder / "model.onnx.data").open("r+b") as file:
        file.write(b"\xff")
    with pytest.raises(ModelError, match=r"model\.onnx\.data: is damaged"):
        manifest.verify(folder)


def test_a_killed_build_leaves_nothing_half_made(tmp_path: Path) -> None:
    """A real process, killed in the middle of the conversion; the next build succeeds and clears up after it."""
    recipe, cache = recipe_for(tmp_path), tmp_path / "cache"
    script = (
        "import sys, time; from pathlib import Path; from tests.tiny import tiny_recipe\n"
        "from edgeguard.model.build import build\n"
        "def progress(phase, done, total):\n"
        "    if (phase, done) == ('convert', 1): print('converting', flush=True); time.sleep(60)\n"
        "build(tiny_recipe(Path(sys.argv[1])), cache_dir=Path(sys.argv[2]), progress=progress)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "tiny.gguf"), str(cache)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "converting\n"
        process.send_signal(signal.SIGKILL)
    folder = built_folder(recipe, cache_dir=cache)
    assert not folder.exists()
    assert list((cache / "models").glob(".*/*")), "the kill came too early to leave anything"
    assert build(recipe, cache_dir=cache) == folder
    manifest.verify(folder)
    assert {path.name for path in (cache / "models").iterdir()} == {folder.name, f".{folder.name}.lock"}


def test_two_builds_at_once_make_one_folder(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    script = (
        "import sys; from pathlib import Path; from tests.tiny import tiny_recipe\n"
        "from edgeguard.model.build import build\n"
        "build(tiny_recipe(Path(sys.argv[1])), cache_dir=Path(sys.argv[2]), progress=lambda *_: print('step'))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "tiny.gguf"), str(tmp_path / "cache")]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) for _ in range(2)]
    printed = sorted(process.communicate()[0] for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    assert printed[0] == ""  # one of them waited and found the folder made
    assert "step" in printed[1]


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EDGEGUARD_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert default_cache_dir() == Path.home() / ".cache" / "edgeguard"
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert default_cache_dir() == Path("/var/cache/edgeguard")
    monkeypatch.setenv("EDGEGUARD_CACHE", "/big/disk")
    assert default_cache_dir() == Path("/big/disk")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(ModelError, match=r"cache: the model cannot be written there"):
        build(recipe_for(tmp_path), cache_dir=tmp_path / "cache")


def test_a_source_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path)
    pinned = replace(recipe, source=PathSource(path=tmp_path / "tiny.gguf", sha256="0" * 64))
    with pytest.raises(FetchError, match=r"tiny\.gguf is not the file that the recipe pins"):
        build(pinned, cache_dir=tmp_path / "cache")


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"nowhere\.gguf: cannot be read: No such file"):
        build(tiny_recipe(tmp_path / "nowhere.gguf"), cache_dir=tmp_path / "cache")


def test_another_architecture_is_refused_by_name(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", architecture="mamba")
    with pytest.raises(ModelError, match="architecture 'mamba'; only 'llama' can be built"):
        build(tiny_recipe(tmp_path / "tiny.gguf"), cache_dir=tmp_path / "cache")


@pytest.mark.parametrize("kind", ["Q5_0", "BF16"])
def test_a_tensor_of_another_type_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", other_types={"ffn_down": kind})
    with pytest.raises(ModelError, match=rf"'blk\.0\.ffn_down\.weight' has type {kind}.*Q4_0, Q4_1, Q8_0, F16, F32"):
        build(tiny_recipe(tmp_path / "tiny.gguf"), cache_dir=tmp_path / "cache")


def add_bias(writer: gguf.GGUFWriter) -> None:
    import numpy as np

    writer.add_tensor("blk.0.attn_q.bias", np.zeros(64, np.float32))


REFUSED: list[tuple[Callable[[gguf.GGUFWriter], None], type[ModelError], str]] = [
    (add_bias, ModelError, r"'blk\.0\.attn_q\.bias' is not part of"),
    (lambda w: w.add_expert_count(8), ModelError, r"llama\.expert_count = 8 is not supported"),
    (lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.YARN), ModelError, r"rope\.scaling\.type = 'yarn'"),
    (lambda w: w.add_key_length(8), ModelError, "head sizes that do not fit together"),
    (lambda w: w.add_tokenizer_pre("qwen2"), TokenizerError, "'gpt2' with pre-tokenizer 'qwen2'"),
    (lambda w: w.add_tokenizer_model("llama"), TokenizerError, "tokenizer 'llama' with"),
    (lambda w: w.add_add_bos_token(True), TokenizerError, "add_bos_token"),
]


@pytest.mark.parametrize(("change", "error", "said"), REFUSED)
def test_what_would_have_to_be_ignored_is_refused(
    tmp_path: Path, change: Callable[[gguf.GGUFWriter], None], error: type[ModelError], said: str
) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", change=change)
    with pytest.raises(error, match=said):
        build(tiny_recipe(tmp_path / "tiny.gguf"), cache_dir=tmp_path / "cache")
    assert not [path for path in (tmp_path / "cache" / "models").iterdir() if path.suffix != ".lock"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_but_never_anything_else(tmp_path: Path, data: st.DataObject) -> None:
    """Cut short, or with one byte of the header changed. Weights that are still numbers cannot be told from others."""
    intact = tmp_path / "intact.gguf"
    if not intact.exists():
        write_tiny_gguf(intact)
    content = bytearray(intact.read_bytes())
    if data.draw(st.booleans(), label="cut"):
        del content[data.draw(st.integers(0, len(content) - 1), label="length") :]
    else:
        content[data.draw(st.integers(0, 12_000), label="position")] = data.draw(st.integers(0, 255), label="byte")
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(content)
    with contextlib.suppress(ModelError):
        GgufSource(path=damaged)


@pytest.mark.model
def test_the_real_model_is_built_in_bounded_memory(tmp_path: Path) -> None:
    """In a process of its own, from the wheel that is already fetched; 2 GB is the promise."""
    real_model()  # so that the wheel is in the cache
    (tmp_path / "downloads").symlink_to(default_cache_dir() / "downloads")
    script = (
        "import sys; from pathlib import Path; from edgeguard.model.build import build\n"
        "from edgeguard.model.recipe import find; build(find('smollm2-135m'), cache_dir=Path(sys.argv[1]))\n"
        # Not ru_maxrss: what starts as a copy of the tests' process has the peak of that one too.
        "status = dict(line.split(':', 1) for line in Path('/proc/self/status').read_text().splitlines())\n"
        "print(status['VmHWM'].split()[0], 'torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=dict(os.environ), text=True)
    peak_kib, torch = done.stdout.split()
    assert int(peak_kib) < 1_000_000
    assert torch == "False"


def recipe_for(folder: Path) -> Recipe:
    write_tiny_gguf(folder / "tiny.gguf")
    return tiny_recipe(folder / "tiny.gguf")
