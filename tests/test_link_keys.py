"""The key of the wire: its file, and SipHash against the paper's own vector."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edgeguard.errors import ConfigError
from edgeguard.link.key_file import read_key
from edgeguard.link.siphash import siphash24

KEY = "000102030405060708090a0b0c0d0e0f"


def write(folder: Path, content: str = KEY, *, mode: int = 0o600) -> Path:
    file = folder / "link.key"
    file.write_text(content)
    file.chmod(mode)
    return file


def test_siphash_is_that_of_the_paper() -> None:
    assert siphash24(bytes(range(16)), bytes(range(15))).hex() == "e545be4961ca29a1"  # its appendix A
    assert siphash24(bytes(range(16)), b"").hex() == "310e0edd47db6f72"  # the first of the reference code's vectors


@pytest.mark.parametrize(
    "content", [KEY, KEY.upper() + "\n", " ".join(KEY[place : place + 2] for place in range(0, 32, 2))]
)
def test_a_key_is_thirty_two_digits(tmp_path: Path, content: str) -> None:
    assert read_key(write(tmp_path, content)) == bytes(range(16))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    file = write(tmp_path, mode=mode)
    with pytest.raises(ConfigError, match=rf"link.key_file: .*link.key: .*mode {mode:o}\); chmod 600 "):
        read_key(file)


@pytest.mark.parametrize(
    ("content", "says"),
    [("", "0 hexadecimal digits; it must have 32"), (KEY[:-2], "30 hexadecimal"), ("secret", "must be 32 hexadecimal")],
)
def test_what_is_no_key_is_refused_and_never_shown(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        read_key(write(tmp_path, content))
    assert content == "" or content not in str(refused.value)


def test_a_missing_key_comes_with_the_command_that_makes_one(tmp_path: Path) -> None:
    missing = tmp_path / "link.key"
    with pytest.raises(ConfigError, match="No such file or directory") as refused:
        read_key(missing)
    command = str(refused.value).partition("make one: ")[2]
    assert os.system(command) == 0
    assert len(read_key(missing)) == 16


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path)
    os.chown(file, 65_534, 65_534)
    with pytest.raises(ConfigError, match="belongs to user 65534"):
        read_key(file)
