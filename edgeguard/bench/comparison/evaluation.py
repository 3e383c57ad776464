"""The evaluation file: what the robot may be told, and which answers are right. For any schema and any fields.

JSON Lines, one case a line; blank lines are allowed.

    {"id": "p-017", "observation": {"said": "swing left", "front_m": 1.4},
     "accepted": {"move": ["left"], "speed": {"min": 0.2, "max": 0.4}}, "tags": ["in-scope", "terse"]}

``observation`` names fields of the configuration; one that is left out is no reading. ``accepted`` has, for each field
of the answer that matters, the accepted values or a range with both ends included. ``tags`` and ``id`` are optional;
a case without an id is called after its line. Numbers are exact (``Decimal``). Everything that is wrong is reported at
once, as ``ConfigError``, each with file, line and key. Knows nothing of models.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from edgeguard.answer import Field, Grid, read_schema
from edgeguard.config import Config
from edgeguard.config.plant_sections import FieldSpec
from edgeguard.engine.observation_text import format_value
from edgeguard.errors import ConfigError, ObservationError
from edgeguard.types import Value

_KEYS = ("id", "observation", "accepted", "tags")

MOST_SHOWN = 20
"""Problems that are listed: a file of another kind has one on every line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Every number from ``low`` to ``high``, both included."""

    low: Decimal
    high: Decimal


Accepted: TypeAlias = Span | tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line: an observation, and for some fields of the answer what is right."""

    id: str
    line: int
    observation: Mapping[str, Value]
    accepted: Mapping[str, Accepted]
    tags: tuple[str, ...] = ()

    def judge(self, values: Mapping[str, Any] | None) -> dict[str, bool]:
        """Per field that matters, whether the answer's value is right; without an answer none is."""
        return {
            name: values is not None and name in values and _accepts(accepted, values[name])
            for name, accepted in self.accepted.items()
        }


def read_evaluation(path: Path, *, config: Config) -> tuple[Case, ...]:
    """All cases of ``path``, for the observation and the answer of ``config``."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name a file of cases, one a line") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read (it is no text); name a file of cases, one a line") from error
    reader = _Reader(path=path, specs=config.fields, fields=read_schema(config.schema))
    cases = [reader.case(text, line) for line, text in enumerate(lines, start=1) if text.strip()]
    if not cases:
        reader.problems.append(f"{path}: has no cases; each line is one, see the README")
    if reader.problems:
        more = len(reader.problems) - MOST_SHOWN
        raise ConfigError(reader.problems[:MOST_SHOWN] + ([f"{path}: and {more} more"] if more > 0 else []))
    return tuple(case for case in cases if case is not None)


def draw_cases(cases: Sequence[Case], *, limit: int | None, seed: int) -> tuple[Case, ...]:
    """The cases in a seeded order, at most ``limit`` of them."""
    order = list(cases)
    random.Random(seed).shuffle(order)
    return tuple(order[:limit])


class _Reader:
    """Collects what is wrong while it reads, so that one run shows everything."""

    def __init__(self, *, path: Path, specs: Sequence[FieldSpec], fields: Sequence[Field]) -> None:
        self.problems: list[str] = []
        self._path = path
        self._specs = {spec.name: spec for spec in specs}
        self._fields = {field.name: field for field in fields}
        self._lines: dict[str, int] = {}
        self._line = 0

    def case(self, text: str, line: int) -> Case | None:
        self._line = line
        try:
            content = json.loads(text, parse_float=Decimal, parse_constant=_refuse)
        except ValueError as error:
            self._problem(f"is not JSON: {error}")
            return None
        if not isinstance(content, dict):
            self._problem("is not a JSON object")
            return None
        for key in sorted(content.keys() - set(_KEYS)):
            self._problem(f"{key!r} is no key of a case; there are {', '.join(_KEYS)}")
        return Case(
            id=self._id(content.get("id", f"line {line}")),
            line=line,
            observation=self._observation(content.get("observation")),
            accepted=self._accepted(content.get("accepted")),
            tags=self._tags(content.get("tags", [])),
        )

    def _id(self, value: Any) -> str:
        if not isinstance(value, str) or not value:
            self._problem(f"id: {value!r} is not a text")
        elif (first := self._lines.setdefault(value, self._line)) != self._line:
            self._problem(f"id: {value!r} is line {first}'s already")
        return str(value)

    def _tags(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, list) and all(isinstance(tag, str) and tag for tag in value):
            return tuple(value)
        self._problem(f"tags: {value!r} is not a list of words")
        return ()

    def _observation(self, content: Any) -> dict[str, Value]:
        if not isinstance(content, dict):
            self._problem("observation: is missing, or no object")
            return {}
        for name, value in content.items():
            if problem := self._problem_of(name, value):
                self._problem(f"observation: {problem}")
        return content

    def _problem_of(self, name: str, value: Any) -> str:
        spec = self._specs.get(name)
        if spec is None:
            return f"{name!r} is no [[field]] of the configuration; there are {', '.join(self._specs)}"
        try:
            format_value(spec, value)
        except ObservationError as error:
            return str(error)
        if spec.kind == "number" and value is not None:
            for end, outside in ((spec.low, "below"), (spec.high, "above")):
                if end is not None and (value < end if outside == "below" else value > end):
                    return f"field {name!r} is {value}, {outside} its {end:g}, which is no reading"
        return ""

    def _accepted(self, content: Any) -> dict[str, Accepted]:
        if not isinstance(content, dict) or not content:
            self._problem("accepted: is missing, empty or no object; name what is right for at least one field")
            return {}
        accepted = {}
        for name, value in content.items():
            field = self._fields.get(name)
            if field is None:
                self._problem(f"accepted: {name!r} is no field of the answer; there are {', '.join(self._fields)}")
            elif (read := self._one_accepted(field, value)) is not None:
                accepted[name] = read
        return accepted

    def _one_accepted(self, field: Field, value: Any) -> Accepted | None:
        where = f"accepted.{field.name}"
        if isinstance(value, list) and value:
            for one in value:
                if not field.accepts(one):
                    self._problem(f"{where}: {_shown(one)} is not one of the schema's values")
            return tuple(value)
        if isinstance(value, dict) and value.keys() == {"min", "max"} and all(map(_is_number, value.values())):
            span = Span(low=Decimal(value["min"]), high=Decimal(value["max"]))
            if not any(_accepts(span, one) for one in field):
                numbers = f"{field.first} to {field.last}" if isinstance(field, Grid) else "its values"
                self._problem(f"{where}: nothing from {span.low} to {span.high} is in {numbers}")
            return span
        self._problem(f'{where}: {_shown(value)} is neither a list of values nor {{"min": …, "max": …}}')
        return None

    def _problem(self, text: str) -> None:
        self.problems.append(f"{self._path}:{self._line}: {text}")


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _accepts(accepted: Accepted, value: Any) -> bool:
    """By value: 0.5 is 0.50, but true is not 1."""
    if isinstance(accepted, Span):
        return _is_number(value) and accepted.low <= _exact(value) <= accepted.high
    return any(isinstance(one, bool) == isinstance(value, bool) and _exact(one) == _exact(value) for one in accepted)


def _exact(value: Any) -> Any:
    """A float as the number that was written: the shortest decimal that is that float."""
    return Decimal(repr(value)) if isinstance(value, float) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
