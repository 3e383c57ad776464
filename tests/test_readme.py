"""The README stays true: its commands, its exit codes, its keys and its links are those of the code."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from edgeguard import errors
from edgeguard.cli.causes import markdown
from edgeguard.cli.main import build_parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def subclasses(kind):
    for sub in kind.__subclasses__():
        yield sub
        yield from subclasses(sub)


def test_every_exit_code_is_in_its_table_with_its_meaning():
    table = dict(re.findall(r"^\| (\d+) \| (.+) \|$", README, re.MULTILINE))
    for kind in subclasses(errors.EdgeguardError):
        if kind.__module__ != "edgeguard.errors":
            continue
        assert str(kind.exit_code) in table, kind
        if "exit_code" in vars(kind):
            meaning = inspect.getdoc(kind).split(";")[0].split(".")[0]
            assert meaning.lower()[:30] in table[str(kind.exit_code)].lower(), kind


def keys_of_the_configuration() -> set[str]:
    """The first argument of every reading call in ``edgeguard.config``."""
    readers = {"text", "flag", "number", "integer", "milliseconds", "numbers", "texts", "raw", "table", "tables"}
    readers |= {"optional_number", "optional_milliseconds"}
    keys = set()
    for file in (ROOT / "edgeguard" / "config").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in readers:
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    keys.add(first.value)
    return keys


@pytest.mark.parametrize("key", sorted(keys_of_the_configuration()))
def test_every_key_of_the_configuration_is_documented(key):
    assert re.search(rf"\b{re.escape(key)}\b", README)


def test_every_command_is_in_its_table():
    parser = build_parser()
    commands = next(action for action in parser._actions if action.choices)
    for command in commands.choices:
        assert f"`edgeguard {command}" in README


def test_the_table_of_reason_codes_is_the_guards_own():
    table = README.split("<!-- causes -->\n")[1].split("\n<!-- end -->")[0]
    assert table == markdown()


def test_files_that_it_names_exist():
    for path in re.findall(r"`((?:edgeguard|models|calibration|tests|systemd|\.ci)/[\w./]+)`", README):
        assert (ROOT / path).exists(), path


def test_it_names_nothing_that_is_still_to_be_written():
    assert "@@" not in README
    assert "TODO" not in README
