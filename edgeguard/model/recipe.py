"""Recipes: which file a model is made of, under which licence, and how it is built. Data, not code.

A recipe is a TOML file. Those that come with edgeguard lie in ``models/`` of a checkout and in this package's
``recipes/`` when it is installed from a wheel; a user's own is named by its path.

    name, summary, licence
    [source]  one of   wheel + version + file    a file inside a wheel of the package index
                       hub + revision + file     a file of a hub repository
                       path                      a local file, relative to the recipe
              sha256 of the wheel or the file (may be left out for ``path`` only)
    [build]   accuracy_level (0 or 4), logits ("last" or "all"), weights, head, embedding (``options.Weights``)

Everything that is wrong is reported at once, as ``ConfigError``, with the nearest known key for an unknown one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.config.toml import read_toml
from edgeguard.errors import ConfigError
from edgeguard.model.options import GraphOptions, Logits, Weights

_PACKAGE = Path(__file__).parent
_IN_A_WHEEL, _IN_A_CHECKOUT = _PACKAGE / "recipes", _PACKAGE.parent.parent / "models"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_ACCURACY_LEVELS = (0, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSource:
    """``file`` inside a wheel of the package index; ``sha256`` is the wheel's."""

    wheel: str
    version: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """``file`` of the hub repository ``hub`` (owner/name) at ``revision``; ``sha256`` is the file's."""

    hub: str
    revision: str
    file: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSource:
    """A local file; ``sha256`` is None when the recipe does not pin it."""

    path: Path
    sha256: str | None = None


Source = WheelSource | HubSource | PathSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One model: what it is made of and how. ``adapter``: the folder of a low-rank adapter that is built in."""

    name: str
    summary: str
    licence: str
    source: Source
    build: GraphOptions
    adapter: Path | None = None


def shipped_folder() -> Path:
    """Where recipes and adapters are that come with edgeguard."""
    return _IN_A_WHEEL if _IN_A_WHEEL.is_dir() else _IN_A_CHECKOUT


def known() -> dict[str, Path]:
    """The recipes that come with edgeguard: name to file."""
    return {path.stem: path for path in sorted(shipped_folder().glob("*.toml"))}


def find(name: str) -> Recipe:
    """The recipe that comes with edgeguard under ``name``, or the one in the file ``name`` if it ends in .toml."""
    if name.endswith(".toml"):
        return load(Path(name))
    recipes = known()
    if name not in recipes:
        raise ConfigError(
            f"no recipe {name!r}{_nearest(name, recipes)}; there are {', '.join(recipes) or 'none'}, "
            "or name a recipe file of your own (*.toml)"
        )
    return load(recipes[name])


def load(path: Path) -> Recipe:
    """Read and check one recipe file."""
    _, content = read_toml(path, what="a recipe, or write one")
    return _Reader(path=path).recipe(content)


class _Reader:
    """Collects what is wrong while it reads, so that one run shows everything."""

    def __init__(self, *, path: Path) -> None:
        self._path = path
        self._problems: list[str] = []

    def recipe(self, content: dict[str, Any]) -> Recipe:
        self._known_keys(content, ("name", "summary", "licence", "source", "build"), where="")
        name = self._text(content, "name", pattern=_NAME)
        summary = self._text(content, "summary")
        licence = self._text(content, "licence")
        source = self._source(self._table(content, "source"))
        options = self._build(self._table(content, "build"))
        if self._problems or source is None:
            raise ConfigError(self._problems)
        return Recipe(name=name, summary=summary, licence=licence, source=source, build=options)

    def _source(self, table: dict[str, Any]) -> Source | None:
        kinds = {"wheel": ("version", "file"), "hub": ("revision", "file"), "path": ()}
        named = [kind for kind in kinds if kind in table]
        if len(named) != 1:
            self._problem("[source] needs exactly one of 'wheel', 'hub' or 'path'")
            self._known_keys(table, ("wheel", "hub", "path", "version", "revision", "file", "sha256"), where="source.")
            return None
        kind = named[0]
        keys = (kind, *kinds[kind])
        self._known_keys(table, (*keys, "sha256"), where="source.")
        values = {key: self._text(table, key, where="source.") for key in keys}
        if kind == "path" and "sha256" not in table:
            return PathSource(path=self._path.parent / values["path"])
        sha256 = self._text(table, "sha256", where="source.", pattern=_SHA256)
        if kind == "path":
            return PathSource(path=self._path.parent / values["path"], sha256=sha256)
        return WheelSource(**values, sha256=sha256) if kind == "wheel" else HubSource(**values, sha256=sha256)

    def _build(self, table: dict[str, Any]) -> GraphOptions:
        parts = ("weights", "head", "embedding")
        self._known_keys(table, ("accuracy_level", "logits", *parts), where="build.")
        defaults = GraphOptions()
        level = self._choice(table, "accuracy_level", _ACCURACY_LEVELS, defaults.accuracy_level)
        logits = self._choice(table, "logits", tuple(kind.value for kind in Logits), defaults.logits.value)
        kinds = tuple(kind.value for kind in Weights)
        chosen: dict[str, Any] = {
            part: Weights(self._choice(table, part, kinds, kinds[0])) for part in parts if part in table
        }
        return GraphOptions(accuracy_level=level, logits=Logits(logits), **chosen)

    def _table(self, content: dict[str, Any], key: str) -> dict[str, Any]:
        value = content.get(key, {})
        if isinstance(value, dict):
            return value
        self._problem(f"{key} = {value!r} must be a table: [{key}]")
        return {}

    def _text(
        self, table: dict[str, Any], key: str, *, where: str = "", pattern: re.Pattern[str] = re.compile(r".+")
    ) -> str:
        if key not in table:
            self._problem(f"{where}{key} is missing")
            return ""
        value = table[key]
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        self._problem(f"{where}{key} = {value!r} must be a string that matches {pattern.pattern}")
        return ""

    def _choice(self, table: dict[str, Any], key: str, allowed: tuple[Any, ...], default: Any) -> Any:
        value = table.get(key, default)
        if value in allowed and type(value) is type(default):
            return value
        self._problem(f"build.{key} = {value!r} must be one of {', '.join(map(repr, allowed))}")
        return default

    def _known_keys(self, table: dict[str, Any], keys: tuple[str, ...], *, where: str) -> None:
        for key in table:
            if key not in keys:
                self._problem(f"{where}{key} is no key of a recipe{_nearest(key, keys)}")

    def _problem(self, text: str) -> None:
        self._problems.append(f"{self._path}: {text}")


def _nearest(word: str, known_words: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known_words), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
