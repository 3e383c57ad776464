"""Frozen dataclasses as plain JSON values and back, by their own annotations.

One codec for everything that leaves a process: records, events, status, the core's state. Enums travel as their values,
mappings with text keys as objects, tuples as lists, sets as lists in a stable order. Reading is strict: a value of
another shape is a ``ValueError`` that names the place. In a union the member of the value's own type wins, so that a
Decimal stays one; else the first that fits.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """``value`` as dictionaries, lists, texts, numbers, true, false and null."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(to_plain(key)): to_plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(to_plain, value), key=str)
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], plain: object, *, where: str = "") -> T:
    """The dataclass ``kind`` that ``to_plain`` made ``plain`` of."""
    return typing.cast(T, _read(kind, plain, where or kind.__name__))


@functools.cache
def _annotations(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, plain: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(typing.get_args(kind), plain, where)
    if origin is tuple:
        item_kind, *rest = typing.get_args(kind)
        if not isinstance(plain, list):
            raise ValueError(f"{where}: {plain!r} is not a list")
        if rest == [...]:
            return tuple(_read(item_kind, item, f"{where}[{index}]") for index, item in enumerate(plain))
        kinds = (item_kind, *rest)
        if len(plain) != len(kinds):
            raise ValueError(f"{where}: {len(plain)} items instead of {len(kinds)}")
        return tuple(_read(one, item, where) for one, item in zip(kinds, plain, strict=True))
    if origin is frozenset:
        if not isinstance(plain, list):
            raise ValueError(f"{where}: {plain!r} is not a list")
        return frozenset(_read(typing.get_args(kind)[0], item, f"{where}[{index}]") for index, item in enumerate(plain))
    if origin is not None and issubclass(origin, Mapping):
        key_kind, item_kind = typing.get_args(kind)
        if not isinstance(plain, dict):
            raise ValueError(f"{where}: {plain!r} is not an object")
        return {_read(key_kind, key, where): _read(item_kind, item, f"{where}.{key}") for key, item in plain.items()}
    if is_dataclass(kind):
        return _read_dataclass(kind, plain, where)
    return _read_scalar(kind, plain, where)


def _read_dataclass(kind: Any, plain: Any, where: str) -> Any:
    if not isinstance(plain, dict):
        raise ValueError(f"{where}: {plain!r} is not an object")
    kinds = _annotations(kind)
    unknown = plain.keys() - kinds.keys()
    if unknown:
        raise ValueError(f"{where}: unknown {', '.join(sorted(unknown))}")
    try:
        return kind(**{name: _read(kinds[name], item, f"{where}.{name}") for name, item in plain.items()})
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error


def _read_union(kinds: tuple[Any, ...], plain: Any, where: str) -> Any:
    if type(plain) in kinds:
        return plain
    for kind in kinds:
        try:
            return _read(kind, plain, where)
        except ValueError:
            continue
    raise ValueError(
        f"{where}: {plain!r} is none of {', '.join(getattr(kind, '__name__', str(kind)) for kind in kinds)}"
    )


def _read_scalar(kind: Any, plain: Any, where: str) -> Any:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain)
    number = isinstance(plain, typing.SupportsFloat) and not isinstance(plain, (bool, str))
    if kind is float and number:
        return float(plain)
    if isinstance(kind, type) and isinstance(plain, kind) and (kind is bool or not isinstance(plain, bool)):
        return plain
    raise ValueError(f"{where}: {plain!r} is not {getattr(kind, '__name__', kind)}")
