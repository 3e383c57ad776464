"""What a provider has compiled is kept whole or not at all, whatever happens while it is written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgeguard.engine.compiled import check_compiled, write_compiled
from edgeguard.engine.providers import find_provider
from edgeguard.errors import ProviderError

OPENVINO = find_provider("openvino")
FACTS = {"model": "m", "threads": "2"}


def write(directory: Path, content: str) -> None:
    def compile_into(scratch: Path) -> None:
        (scratch / "below").mkdir()
        (scratch / "below" / "blob").write_text(content)

    write_compiled(directory, provider=OPENVINO, facts=FACTS, compile_into=compile_into)


def folders(parent: Path) -> list[Path]:
    return [path for path in parent.iterdir() if path.is_dir()]


def test_a_new_one_takes_the_place_of_the_old(tmp_path: Path) -> None:
    directory = tmp_path / "cache" / "model"
    for content in ("first", "second"):
        write(directory, content)
        check_compiled(directory, facts=FACTS)
        assert (directory / "below" / "blob").read_text() == content
    assert json.loads((directory / "manifest.json").read_bytes())["files"] == ["below/blob"]
    assert folders(directory.parent) == [directory], "nothing half-made is left"


def test_a_compilation_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    write(directory, "first")
    with pytest.raises(ProviderError, match="wrote no OpenVINO blobs"):
        write_compiled(directory, provider=OPENVINO, facts=FACTS, compile_into=lambda _: None)
    check_compiled(directory, facts=FACTS)
    assert folders(tmp_path) == [directory]


KILLED = """
import os, signal, sys
from pathlib import Path
from edgeguard.engine.compiled import write_compiled
from edgeguard.engine.providers import find_provider

def compile_into(scratch):
    (scratch / "blob").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

write_compiled(Path(sys.argv[1]), provider=find_provider("openvino"), facts={}, compile_into=compile_into)
"""


def test_what_a_killed_compilation_left_the_next_one_removes(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(directory)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert folders(tmp_path) == [tmp_path / ".model"]
    write(directory, "whole")
    assert folders(tmp_path) == [directory]


def test_a_place_that_cannot_be_written_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ProviderError, match=r"file/model: cannot be written .* EDGEGUARD_CACHE"):
        write(tmp_path / "file" / "model", "anything")


def test_a_provider_that_keeps_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="compiles nothing that could be kept"):
        write_compiled(tmp_path / "model", provider=find_provider("cpu"), facts=FACTS, compile_into=lambda _: None)
