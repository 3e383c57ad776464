"""What each rung of the ladder of plans may answer: some of what the whole answer may be, so that whichever one runs,
every axis finds its value.

Needs the configuration alone. Raises ``ConfigError`` with every problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from edgeguard.answer import Field, Grid, Scalar, read_schema
from edgeguard.config import Config
from edgeguard.config.plant_sections import AxisSource
from edgeguard.errors import ConfigError, SchemaError


def rung_fields(config: Config, fields: Sequence[Field]) -> Mapping[str, tuple[Field, ...]]:
    """The fields of every rung's answer by its name; ``fields`` are the whole answer's. Without plans it is ``""``."""
    if not config.plans:
        return {"": tuple(fields)}
    found, problems = dict[str, tuple[Field, ...]](), list[str]()
    for index, rung in enumerate(config.plans):
        where = f"plan[{index}].schema"
        try:
            found[rung.name] = tuple(read_schema(rung.schema, where=where))
        except SchemaError as error:
            problems += error.problems
        else:
            problems += [f"{where}: {one}" for one in _problems(found[rung.name], config=config, whole=fields)]
    if problems:
        raise ConfigError([f"{config.file}: {problem}" for problem in problems])
    return found


def _problems(fields: Sequence[Field], *, config: Config, whole: Sequence[Field]) -> Iterator[str]:
    known = {field.name: field for field in whole}
    for field in fields:
        if field.name not in known:
            yield f"answer.schema has no field {field.name!r}; it has: {', '.join(known)}"
        elif (stranger := _stranger(field, known[field.name])) is not None:
            yield f"{field.name!r} may be {stranger}, which answer.schema does not allow"
    names = {field.name for field in fields}
    for axis in config.axes:
        for name in _read_by(axis.source):
            if name in known and name not in names:
                yield f"axis {axis.name!r} needs the field {name!r}"


def _stranger(field: Field, whole: Field) -> str | None:
    """A value of ``field`` that ``whole`` has not, as it is written. Of two grids three values tell: when the first two
    and the last are on the other one, all are.
    """
    values: Iterable[Scalar] = field
    if isinstance(field, Grid) and isinstance(whole, Grid):
        values = [*islice(field, 2), field.last]
    return next((field.text(value) for value in values if not whole.accepts(value)), None)


def _read_by(source: AxisSource) -> Iterator[str]:
    yield source.field
    if source.times is not None:
        yield from _read_by(source.times)
