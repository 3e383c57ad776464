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
from edgeguard.config.plant_sections import AxisSource
from edgeguard.config.reader import Problems
from edgeguard.config.sections import Prompt
from edgeguard.errors import AnswerError, ConfigError, SchemaError
from edgeguard.guard.mapping import value_key
from edgeguard.guard.rungs import rung_fields
from edgeguard.guard.stopping import stopping_problems
from edgeguard.link import CODECS
from edgeguard.runtime.serial_wire import command_wire_ns, wire_problems

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
        _check_prompt(config, config.prompt, fields, where="prompt", problems=problems)
        _check_plans(config, fields, problems)
    if config.link.codec not in CODECS:
        problems.add("link.codec", f"{config.link.codec!r} is not one of {', '.join(CODECS)}")
    elif not problems.found:
        problems.found += [f"{problems.file}: {one}" for one in _unfit(config)]
    problems.raise_if_any()
    return Assembly(config=config, fields=fields)


def _unfit(config: Config) -> list[str]:
    """What does not fit the wire and the stops."""
    try:
        wire_ns = command_wire_ns(config)
    except ConfigError as error:
        return list(error.problems)
    return wire_problems(config) + stopping_problems(config, wire_ns=wire_ns)


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
    for axis in config.axes:
        where = f"axis {axis.name!r}.source"
        numbers = _numbers(axis.source, fields, where=where, problems=problems)
        for name, number in numbers.items():
            if not axis.low <= number <= axis.high:
                problems.add(
                    where if axis.source.values is None else f"{where}.values",
                    f"{name} gives {number:g}, out of the axis' range {axis.low:g} to {axis.high:g}",
                )


def _numbers(source: AxisSource, fields: tuple[Field, ...], *, where: str, problems: Problems) -> dict[str, float]:
    """What the axis can be asked for, by the words that ask for it; of a grid the ends are enough."""
    field = next((one for one in fields if one.name == source.field), None)
    if field is None:
        known = ", ".join(one.name for one in fields)
        problems.add(f"{where}.field", f"the answer has no field {source.field!r}; it has: {known}")
        return {}
    numbers = _factor(source, field, where=where, problems=problems)
    if source.times is None:
        return numbers
    times = _numbers(source.times, fields, where=f"{where}.times", problems=problems)
    return {f"{one} and {other}": a * b for one, a in numbers.items() for other, b in times.items()}


def _factor(source: AxisSource, field: Field, *, where: str, problems: Problems) -> dict[str, float]:
    if source.values is None:
        numbers = {}
        for value in _extremes(field):
            if isinstance(value, (bool, str)) or value is None:
                problems.add(
                    where, f"the answer's field {field.name!r} may say {value!r}: give values = {{ … = number }}"
                )
            else:
                numbers[f"{field.name} {value}"] = float(value)
        return numbers
    if len(field) > MOST_NAMED:
        problems.add(f"{where}.values", f"the answer's field {field.name!r} has {len(field)} values: too many to name")
        return {}
    known = {value_key(value) for value in field}
    for missing in sorted(known - source.values.keys()):
        problems.add(f"{where}.values", f"no number for {missing!r}, which the answer may say")
    for name in source.values.keys() - known:
        problems.add(f"{where}.values", f"{name!r} is nothing that the answer's field {field.name!r} may say")
    return dict(source.values)


def _extremes(field: Field) -> list[Scalar]:
    return [field.first, field.last] if isinstance(field, Grid) else list(field)


def _check_plans(config: Config, fields: tuple[Field, ...], problems: Problems) -> None:
    try:
        of_rungs = rung_fields(config, fields)
    except ConfigError as error:
        problems.found += error.problems
        return
    for index, rung in enumerate(config.plans):
        _check_prompt(config, rung.prompt, of_rungs[rung.name], where=f"plan[{index}]", problems=problems)


def _check_prompt(
    config: Config, section: Prompt, fields: tuple[Field, ...], *, where: str, problems: Problems
) -> None:
    try:
        names = template_fields(section.user)
    except ValueError as error:
        problems.add(f"{where}.user", str(error))
        return
    known = [spec.name for spec in config.fields]
    for name in dict.fromkeys(names):
        if name not in known:
            problems.add(f"{where}.user", f"{{{name}}}: no [[field]] of that name; known: {', '.join(known) or 'none'}")
    for index, example in enumerate(section.examples):
        shown = f"{where}.example[{index}]"
        for name in sorted(set(names) - example.observation.keys()):
            problems.add(f"{shown}.observation", f"{name} is missing, and the prompt shows it")
        try:
            check_values(example.answer, fields=fields)
        except AnswerError as error:
            problems.add(f"{shown}.answer", str(error))
