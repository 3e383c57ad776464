"""Recipes are found wherever edgeguard is installed, and everything wrong with one is said at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgeguard.errors import ConfigError
from edgeguard.model.options import GraphOptions, Logits
from edgeguard.model.recipe import HubSource, PathSource, WheelSource, find, known, load

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
HASH = "0123456789abcdef" * 4
HEAD = 'name = "mine"\nsummary = "a model"\nlicence = "Apache-2.0"\n'
LOCAL = '[source]\npath = "mine.gguf"\n'


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "models").glob("*.toml")))
def test_every_shipped_recipe_loads_under_its_name(name: str) -> None:
    recipe = find(name)
    assert recipe.name == name
    assert recipe.licence
    assert not isinstance(recipe.source, PathSource)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (
            f'wheel = "pkg"\nversion = "1.2"\nfile = "a/b.gguf"\nsha256 = "{HASH}"',
            WheelSource(wheel="pkg", version="1.2", file="a/b.gguf", sha256=HASH),
        ),
        (
            f'hub = "me/it"\nrevision = "main"\nfile = "b.gguf"\nsha256 = "{HASH}"',
            HubSource(hub="me/it", revision="main", file="b.gguf", sha256=HASH),
        ),
        (f'path = "/m/b.gguf"\nsha256 = "{HASH}"', PathSource(path=Path("/m/b.gguf"), sha256=HASH)),
    ],
)
def test_a_recipe_names_a_wheel_a_hub_or_a_path(tmp_path: Path, text: str, source: object) -> None:
    assert load(written(tmp_path, f"{HEAD}[source]\n{text}\n")).source == source


def test_a_path_is_relative_to_its_recipe_and_the_build_has_defaults(tmp_path: Path) -> None:
    recipe = find(str(written(tmp_path, HEAD + LOCAL)))
    assert recipe.source == PathSource(path=tmp_path / "mine.gguf")
    assert recipe.build == GraphOptions(accuracy_level=4, logits=Logits.LAST)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + LOCAL + "[build]\nacuracy_level = 4\n", "'accuracy_level'"),
        (HEAD + LOCAL + "[build]\naccuracy_level = 3\n", "build.accuracy_level = 3 must be one of 0, 4"),
        (HEAD + LOCAL + "[build]\naccuracy_level = true\n", "build.accuracy_level = True"),
        (HEAD + LOCAL + '[build]\nlogits = "first"\n', "build.logits = 'first' must be one of 'last', 'all'"),
        (HEAD + LOCAL + "[bild]\n", "did you mean 'build'"),
        (HEAD.replace("licence", "license") + LOCAL, "licence is missing"),
        (HEAD.replace("mine", "../mine") + LOCAL, "name = '../mine'"),
        (HEAD + "source = 3\n", "source = 3 must be a table"),
        (HEAD, "exactly one of 'wheel', 'hub' or 'path'"),
        (HEAD + LOCAL + 'hub = "me/it"\n', "exactly one of 'wheel', 'hub' or 'path'"),
        (HEAD + '[source]\nhub = "me/it"\nrevision = "main"\nfile = "b"\n', "source.sha256 is missing"),
        (HEAD + LOCAL + 'sha256 = "abc"\n', "source.sha256 = 'abc'"),
        (HEAD + LOCAL + 'version = "1"\n', "source.version is no key"),
        ("name = ", "not valid TOML"),
    ],
)
def test_a_mistake_is_named_with_the_file_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, 'nam = "x"\n' + LOCAL + "[build]\naccuracy_level = 1\n"))
    assert len(caught.value.problems) == 5  # an unknown key, three missing, one out of range


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(ConfigError, match="did you mean 'smollm2-135m'") as caught:
        find("smolm2-135m")
    assert all(name in str(caught.value) for name in known())


def test_a_recipe_file_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read"):
        find("nowhere.toml")


def test_recipes_are_found_in_an_installed_wheel(tmp_path: Path) -> None:
    """The layout is that of the wheel: the package, and what pyproject.toml puts into it from outside."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shutil.copytree(ROOT / "edgeguard", tmp_path / "edgeguard", ignore=shutil.ignore_patterns("__pycache__"))
    for inside, target in project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items():
        if (ROOT / inside).is_dir():
            shutil.copytree(ROOT / inside, tmp_path / target)
        else:
            (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / inside, tmp_path / target)
    script = "from edgeguard.model import recipe; print(*recipe.known().values()); recipe.find('smollm2-135m')"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, cwd=tmp_path, env=environment, text=True
    )
    assert str(tmp_path / "edgeguard" / "model" / "recipes" / "smollm2-135m.toml") in done.stdout.split()


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path
