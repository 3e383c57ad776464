"""An answer as JSON text: compact, in the fields' order, one style. ``{"turn":"left","speed":0.4}``

Reading is strict about what counts (every field once, nothing else, each value one of its field's, exact decimals)
and indifferent to what does not (spaces, 0.40 for 0.4). Fails with ``AnswerError``, ``IncompleteAnswerError`` when
fields are missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn, cast

from edgeguard.answer.field import Field, Scalar, spell
from edgeguard.errors import AnswerError, IncompleteAnswerError


def around_values(fields: Sequence[Field]) -> list[tuple[str, str]]:
    """The fixed text before and behind each field's value; all of it and the values, in order, make the answer."""
    last = len(fields) - 1
    return [
        (("" if at else "{") + spell(field.name) + ":", "}" if at == last else ",") for at, field in enumerate(fields)
    ]


def write_answer(values: Mapping[str, object], *, fields: Sequence[Field]) -> str:
    """The canonical text of an answer that ``check_values`` accepts."""
    checked = check_values(values, fields=fields)
    return "".join(
        before + field.text(checked[field.name]) + behind
        for field, (before, behind) in zip(fields, around_values(fields), strict=True)
    )


def parse_answer(text: str, *, fields: Sequence[Field]) -> dict[str, Scalar]:
    """The values that ``text`` states, in the fields' order: numbers with a fraction as ``Decimal``."""
    try:
        values = json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise AnswerError(f"the answer {text[:200]!r} is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise AnswerError(f"the answer {text[:200]!r} is not an object")
    return check_values(values, fields=fields)


def check_values(values: Mapping[str, object], *, fields: Sequence[Field]) -> dict[str, Scalar]:
    """The same values in the fields' order, each proven to be one of its field's."""
    missing = [field.name for field in fields if field.name not in values]
    if missing:
        raise IncompleteAnswerError(f"the answer lacks {', '.join(map(repr, missing))}")
    unknown = values.keys() - {field.name for field in fields}
    if unknown:
        raise AnswerError(f"the answer has {', '.join(map(repr, sorted(unknown)))}, which no field is called")
    for field in fields:
        if not field.accepts(values[field.name]):
            value = values[field.name]
            said = str(value) if isinstance(value, Decimal) else repr(value)
            raise AnswerError(f"the answer's {field.name!r} is {said}, which is not one of its values")
    return {field.name: cast(Scalar, values[field.name]) for field in fields}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name stands twice")
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
