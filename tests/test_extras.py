"""The way to an optional package is one that works for this installation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edgeguard.extras import command_from

ROOT = Path(__file__).parent.parent


def origin(url: str, **kind: object) -> str:
    return json.dumps({"url": url, **kind})


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (None, "pip install 'edgeguard[plots]'"),
        (origin("https://example.com/edgeguard.whl", archive_info={}), "pip install 'edgeguard[plots]'"),
        (origin("file:///nowhere/edgeguard", dir_info={"editable": True}), "pip install 'edgeguard[plots]'"),
    ],
    ids=["an index", "a URL", "a folder that is gone"],
)
def test_without_a_folder_it_is_the_index(text: str | None, command: str) -> None:
    assert command_from(text, "plots") == command


def test_a_folder_is_named_and_so_is_a_wheel(tmp_path: Path) -> None:
    folder = tmp_path / "my robot"
    folder.mkdir()
    editable = origin(folder.as_uri(), dir_info={"editable": True})
    assert command_from(editable, "log") == f"pip install -e '{folder}[log]'"
    assert command_from(origin(folder.as_uri(), dir_info={}), "log") == f"pip install '{folder}[log]'"
    wheel = folder / "edgeguard-1-py3-none-any.whl"
    wheel.touch()
    assert command_from(origin(wheel.as_uri(), archive_info={}), "log") == f"pip install '{wheel}[log]'"


def test_in_the_folder_itself_it_is_what_the_readme_says(tmp_path: Path) -> None:
    code = "from edgeguard.extras import command_from; import sys; print(command_from(sys.argv[1], 'plots'))"
    text = origin(ROOT.as_uri(), dir_info={"editable": True})
    said = subprocess.run([sys.executable, "-c", code, text], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout == "pip install -e '.[plots]'\n"
    assert said.stdout.strip() in (ROOT / "README.md").read_text()


def test_a_checkout_that_nobody_installed_is_installed(tmp_path: Path) -> None:
    """An interpreter without site-packages finds the package by the path alone."""
    code = (
        "import sys; sys.path.append(sys.argv[1]); from edgeguard.extras import install_command as c; print(c('log'))"
    )
    bare = [sys.executable, "-I", "-S", "-c", code, str(ROOT)]
    said = subprocess.run(bare, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said == f"pip install -e '{ROOT}[log]'\n"
