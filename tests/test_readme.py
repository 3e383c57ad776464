"""The README and its pages stay true: commands, exit codes, keys, causes, files and links are those of the code."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from edgeguard import errors
from edgeguard.cli.causes import markdown
from edgeguard.cli.commands import build_parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
KEYS = (ROOT / "edgeguard/config/README.md").read_text()
CAUSES = (ROOT / "edgeguard/guard/README.md").read_text()
PAGES = [ROOT / "README.md"] + [
    page
    for top in ("edgeguard", "models", "calibration", "systemd")
    for page in sorted((ROOT / top).rglob("README.md"))
]


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
    assert re.search(rf"\b{re.escape(key)}\b", KEYS)


def test_every_command_is_in_its_table():
    parser = build_parser()
    commands = next(action for action in parser._actions if action.choices)
    for command in commands.choices:
        assert f"`edgeguard {command}" in README


def test_the_table_of_reason_codes_is_the_guards_own():
    table = CAUSES.split("<!-- causes -->\n")[1].split("\n<!-- end -->")[0]
    assert table == markdown()


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), link
        assert not anchor or anchor in anchors(there), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_rows_of_a_table_have_as_many_cells_as_its_head(page):
    for table in re.findall(r"(?:^\|.*\|\n)+", page.read_text(), re.MULTILINE):
        cells = [len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in table.splitlines()]
        assert len(set(cells)) == 1, table.splitlines()[cells.index(max(cells))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page):
    for path in re.findall(r"`((?:edgeguard|models|calibration|tests|systemd|\.ci)/[\w./]+)`", page.read_text()):
        assert (ROOT / path).exists(), path


def test_it_names_nothing_that_is_still_to_be_written():
    assert "@@" not in README
    assert "TODO" not in README
