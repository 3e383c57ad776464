"""Puts a configuration and its answer schema together and says everything that does not fit, at once.

Needs the file alone: neither the model nor the board. What it accepts, the guard can run on.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeguard.answer import Field, Grid, Scalar, check_values, read_schema
from edgeguard.config import Config, read_config
from edgeguard.config.reader import Problems
from edgeguard.config.sections import Axis
from edgeguard.errors import AnswerError, SchemaError
from edgeguard.guard.mapping import value_key
from edgeguard.guard.stopping import stopping_problems
from edgeguard.link import CODECS
from edgeguard.runtime.serial_wire import command_wire_ns

MOST_NAMED = 1_000
"""An axis that takes its number from a table needs one that a person can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A configuration that holds together, with the fields of its answer."""

    config: Config
    fields: tuple[Field, ...]


def assemble(path: Path | str) -> Assembly:
    """Read and check the file at ``path``; ``ConfigError`` lists every problem."""
    config, problems = read_config(path)
    try:
        fields = read_schema(config.schema, where="answer.schema")
    except SchemaError as error:
        for problem in error.problems:
            problems.found.append(f"{problems.file}: {problem}")
    else:
        _check_axes(config, fields, problems)
        _check_prompt(config, fields, problems)
    if config.link.codec not in CODECS:
        problems.add("link.codec", f"{config.link.codec!r} is not one of {', '.join(CODECS)}")
    elif not problems.found:
        problems.found += [
            f"{problems.file}: {one}" for one in stopping_problems(config, wire_ns=command_wire_ns(config))
        ]
    problems.raise_if_any()
    return Assembly(config=config, fields=fields)


def template_fields(template: str) -> list[str]:
    """The names in the places of a prompt template, in order; ``ValueError`` for a broken one."""
    return list(_names(template))


def _names(template: str) -> Iterator[str]:
    for _, name, form, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if not name.isidentifier() or form or conversion:
            raise ValueError(f"{{{name}}} is not a plain field name (a field's format is in its [[field]])")
        yield name


def _check_axes(config: Config, fields: tuple[Field, ...], problems: Problems) -> None:
    by_name = {field.name: field for field in fields}
    for axis in config.axes:
        field = by_name.get(axis.source.field)
        if field is None:
            problems.add(
                f"axis {axis.name!r}.source.field",
                f"the answer has no field {axis.source.field!r}; it has: {', '.join(by_name)}",
            )
        else:
            _check_source(axis, field, problems)


def _check_source(axis: Axis, field: Field, problems: Problems) -> None:
    where = f"axis {axis.name!r}.source"
    if axis.source.values is None:
        for value in _extremes(field):
            if isinstance(value, (bool, str)) or value is None:
                problems.add(
                    where, f"the answer's field {field.name!r} may say {value!r}: give values = {{ … = number }}"
                )
            elif not axis.low <= value <= axis.high:
                problems.add(where, f"{value} is out of the axis' range {axis.low:g} to {axis.high:g}")
        return
    if len(field) > MOST_NAMED:
        problems.add(f"{where}.values", f"the answer's field {field.name!r} has {len(field)} values: too many to name")
        return
    known = {value_key(value) for value in field}
    for missing in sorted(known - axis.source.values.keys()):
        problems.add(f"{where}.values", f"no number for {missing!r}, which the answer may say")
    for name, number in axis.source.values.items():
        if name not in known:
            problems.add(f"{where}.values", f"{name!r} is nothing that the answer's field {field.name!r} may say")
        if not axis.low <= number <= axis.high:
            problems.add(
                f"{where}.values", f"{name} = {number:g} is out of the axis' range {axis.low:g} to {axis.high:g}"
            )


def _extremes(field: Field) -> list[Scalar]:
    return [field.first, field.last] if isinstance(field, Grid) else list(field)


def _check_prompt(config: Config, fields: tuple[Field, ...], problems: Problems) -> None:
    try:
        names = template_fields(config.prompt.user)
    except ValueError as error:
        problems.add("prompt.user", str(error))
        return
    known = [spec.name for spec in config.fields]
    for name in dict.fromkeys(names):
        if name not in known:
            problems.add("prompt.user", f"{{{name}}}: no [[field]] of that name; known: {', '.join(known) or 'none'}")
    for index, example in enumerate(config.prompt.examples):
        where = f"prompt.example[{index}]"
        for name in sorted(set(names) - example.observation.keys()):
            problems.add(f"{where}.observation", f"{name} is missing, and the prompt shows it")
        try:
            check_values(example.answer, fields=fields)
        except AnswerError as error:
            problems.add(f"{where}.answer", str(error))
