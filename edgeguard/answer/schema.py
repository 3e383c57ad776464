"""A JSON Schema becomes the fields of an answer, or is refused with everything that is wrong with it.

Read are ``enum``, ``const``, ``boolean``, ``integer`` between bounds, and ``number`` between bounds on a
``multipleOf`` grid; local ``$ref``; annotations are passed over. Each property is a field, in the document's order,
and all are required, also those with a default: what a pydantic model's ``model_json_schema()`` gives works as it is.
Anything else is refused with ``SchemaError``: a keyword passed over in silence would let an answer through that the
schema forbids, and an unbounded field cannot be budgeted.

A number of the document (``int``, ``float`` or ``Decimal``) counts as its shortest decimal text: 0.1 is one tenth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from edgeguard.answer.field import EXACT, Choice, Field, Grid, Scalar, spell
from edgeguard.errors import SchemaError

MAX_VALUES = 100_000
"""Values in one field. Each is a path of the automaton: ten times what compiles in under a second."""

MAX_DIGITS = 15
"""Significant digits that a number keeps on its way through JSON and binary floats (IEEE 754: DBL_DIG)."""

_ANNOTATIONS = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$schema", "$id", "$comment", "$defs", "definitions"),
}
# A bound divided by the step, to the first and to the last multiple within it.
_LOWEST: dict[str, Callable[[Fraction], int]] = {
    "minimum": math.ceil,
    "exclusiveMinimum": lambda at: math.floor(at) + 1,
}
_HIGHEST: dict[str, Callable[[Fraction], int]] = {
    "maximum": math.floor,
    "exclusiveMaximum": lambda at: math.ceil(at) - 1,
}
_KEYWORDS = {
    "enum": {"enum", "const", "type"},
    "boolean": {"type"},
    "integer": {"type", "multipleOf", *_LOWEST, *_HIGHEST},
    "number": {"type", "multipleOf", *_LOWEST, *_HIGHEST},
    "object": {"type", "properties", "required", "additionalProperties"},
}
_WAY_OUT = {
    "string": "bound it with 'enum'",
    "array": "give each of its items a property of its own",
    "object": "give each of its properties to the answer itself",
    "null": "use 'const', or 'enum' with null in it",
}


def read_schema(document: Mapping[str, Any], *, where: str = "answer.schema") -> tuple[Field, ...]:
    """The answer's fields in order. ``where`` is the document's name in messages.

    Raises ``SchemaError`` with one problem per field, each naming its path and the keyword that would bound it.
    """
    root = _flatten(document, document=document, where=where)
    _refuse_unknown(root, kind="object", where=where)
    properties = root.get("properties")
    if root.get("type", "object") != "object" or not isinstance(properties, Mapping) or not properties:
        raise SchemaError(f"{where}: an answer is an object with 'properties', at least one")
    if root.get("additionalProperties", False) is not False:
        raise SchemaError(f"{where}: an answer with other properties has no end: set 'additionalProperties' to false")
    required = root.get("required", [])
    if not isinstance(required, (list, tuple)) or not all(isinstance(name, str) for name in required):
        raise SchemaError(f"{where}.required: {required!r} is not a list of names")
    problems = [f"{where}.required: there is no property {name!r}" for name in required if name not in properties]
    fields = []
    for name, schema in properties.items():
        try:
            fields.append(_read_field(name, schema, document=document, where=f"{where}.properties.{name}"))
        except SchemaError as refusal:
            problems.extend(refusal.problems)
    if problems:
        raise SchemaError(problems)
    return tuple(fields)


def _read_field(name: str, schema: Any, *, document: Mapping[str, Any], where: str) -> Field:
    _read_scalar(name, where=where)
    keywords = _flatten(schema, document=document, where=where)
    kind = "enum" if keywords.keys() & {"enum", "const"} else keywords.get("type")
    if kind is None:
        unread = f" ({', '.join(map(repr, keywords))} is not supported)" if keywords else ""
        raise SchemaError(f"{where}: nothing bounds it{unread}; use 'enum', or 'type' boolean, integer or number")
    if kind not in ("enum", "boolean", "integer", "number"):
        way_out = _WAY_OUT.get(str(kind), "use boolean, integer or number, or bound it with 'enum'")
        raise SchemaError(f"{where}: a field of 'type' {kind!r} has no end; {way_out}")
    _refuse_unknown(keywords, kind=kind, where=where)
    if kind == "enum":
        return _read_choice(name, keywords, where=where)
    if kind == "boolean":
        return Choice(name=name, values=(False, True))
    return _read_grid(name, keywords, where=where)


def _flatten(schema: Any, *, document: Mapping[str, Any], where: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """The keywords that bind, with those behind ``$ref`` (and what pydantic wraps it in) beside the schema's own."""
    if not isinstance(schema, Mapping):
        raise SchemaError(f"{where}: {schema!r} is not a schema that bounds anything; add 'enum'")
    keywords = {name: value for name, value in schema.items() if name not in _ANNOTATIONS}
    inner = []
    if "$ref" in keywords:
        reference = keywords.pop("$ref")
        if reference in seen:
            raise SchemaError(f"{where}: $ref {reference!r} leads back to itself")
        inner.append((_resolve(reference, document=document, where=where), (*seen, reference)))
    if isinstance(keywords.get("allOf"), list) and len(keywords["allOf"]) == 1:  # pydantic's older $ref
        inner.append((keywords.pop("allOf")[0], seen))
    if _is_decimal(keywords.get("anyOf")):
        inner.append((keywords.pop("anyOf")[0], seen))
    for part, path in inner:
        for name, value in _flatten(part, document=document, where=where, seen=path).items():
            if keywords.setdefault(name, value) != value:
                raise SchemaError(f"{where}: {name!r} stands here and behind a reference; keep one of the two")
    return keywords


def _is_decimal(alternatives: Any) -> bool:
    """Whether this is ``anyOf: [number, string]``: pydantic's ``Decimal``, of which we write the number."""
    if not isinstance(alternatives, list) or not all(isinstance(one, Mapping) for one in alternatives):
        return False
    return [one.get("type") for one in alternatives] == ["number", "string"]


def _resolve(reference: Any, *, document: Mapping[str, Any], where: str) -> Any:
    """What a JSON pointer into the document points at (RFC 6901)."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise SchemaError(f"{where}: $ref {reference!r} is not local; use '#/$defs/...'")
    target: Any = document
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or key not in target:
            raise SchemaError(f"{where}: $ref {reference!r} points at nothing in this document")
        target = target[key]
    return target


def _refuse_unknown(keywords: Mapping[str, Any], *, kind: str, where: str) -> None:
    unknown = [repr(name) for name in keywords if name not in _KEYWORDS[kind]]
    if unknown:
        beside = "of an answer" if kind == "object" else f"beside {kind!r}"
        raise SchemaError(
            f"{where}: {', '.join(unknown)} {beside} is not supported; bound each field with 'enum', "
            "or with 'minimum', 'maximum' and 'multipleOf'"
        )


def _read_choice(name: str, keywords: Mapping[str, Any], *, where: str) -> Choice:
    listed = keywords.get("enum", [keywords.get("const")])
    if not isinstance(listed, (list, tuple)) or not listed:
        raise SchemaError(f"{where}.enum: a list of at least one value belongs here")
    choice = Choice(name=name, values=tuple(_read_scalar(value, where=where) for value in listed))
    if len(choice) < len(listed):
        raise SchemaError(f"{where}.enum: a value is listed twice; keep one")
    if "const" in keywords:
        constant = _read_scalar(keywords["const"], where=where)
        if not choice.accepts(constant):
            raise SchemaError(f"{where}: 'const' {spell(constant)} is not one of 'enum'; keep one of the two keywords")
        choice = Choice(name=name, values=(constant,))
    if "type" in keywords:
        kinds = keywords["type"] if isinstance(keywords["type"], (list, tuple)) else [keywords["type"]]
        for value in choice:
            if not any(_is_of_type(value, kind) for kind in kinds):
                raise SchemaError(
                    f"{where}: {spell(value)} is not of 'type' {keywords['type']!r}; change one of the two"
                )
    _refuse_count(len(choice), way_out="list fewer with 'enum'", where=where)
    return choice


def _is_of_type(value: Scalar, kind: Any) -> bool:
    if isinstance(value, Decimal):
        return kind == "number" or (kind == "integer" and value == int(value))
    return bool(kind == ("null" if value is None else "boolean" if isinstance(value, bool) else "string"))


def _read_grid(name: str, keywords: Mapping[str, Any], *, where: str) -> Grid:
    kind = keywords["type"]
    bounds = {
        keyword: _read_number(value, where=f"{where}.{keyword}")
        for keyword, value in keywords.items()
        if keyword != "type"
    }
    missing = [next(iter(side)) for side in (_LOWEST, _HIGHEST) if not bounds.keys() & side.keys()]
    if kind == "number" and "multipleOf" not in bounds:
        missing.append("multipleOf")
    if missing:
        raise SchemaError(f"{where}: this {kind} has no end; bound it with {', '.join(map(repr, missing))}")
    step = bounds.get("multipleOf", Decimal(1))
    if step <= 0:
        raise SchemaError(f"{where}.multipleOf: {step} is not greater than 0")
    if kind == "integer":  # the least common multiple of 1 and a/b in lowest terms is a
        step = Decimal(Fraction(step).numerator)
    at = {keyword: Fraction(bound) / Fraction(step) for keyword, bound in bounds.items()}
    lowest = max(multiple(at[keyword]) for keyword, multiple in _LOWEST.items() if keyword in at)
    highest = min(multiple(at[keyword]) for keyword, multiple in _HIGHEST.items() if keyword in at)
    if highest < lowest:
        raise SchemaError(f"{where}: no multiple of {step} lies between its bounds; move 'minimum' or 'maximum'")
    _refuse_count(highest - lowest + 1, way_out="narrow 'minimum' and 'maximum' or raise 'multipleOf'", where=where)
    # Normalized: fewer decimals are fewer tokens.
    grid = Grid(name=name, step=step.normalize(EXACT), multiples=range(lowest, highest + 1))
    for end in (grid.first, grid.last):
        _read_number(end, where=where)
    return grid


def _refuse_count(count: int, *, way_out: str, where: str) -> None:
    if count > MAX_VALUES:
        raise SchemaError(f"{where}: {count:,} values, more than {MAX_VALUES:,}; {way_out}")


def _read_scalar(value: Any, *, where: str) -> Scalar:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (list, tuple, Mapping)):
        raise SchemaError(f"{where}: {value!r} is not a text, number, boolean or null; nothing nests in an answer")
    if not isinstance(value, str):
        return _read_number(value, where=where)
    if any("\ud800" <= letter <= "\udfff" for letter in value):
        raise SchemaError(f"{where}: {value!r} holds half a character (a surrogate); write the whole one")
    return value


def _read_number(value: Any, *, where: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise SchemaError(f"{where}: {value!r} is not a number")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise SchemaError(f"{where}: {value!r} is not finite")
    if len(number.as_tuple().digits) > MAX_DIGITS or abs(number.adjusted()) >= MAX_DIGITS:
        raise SchemaError(f"{where}: {number} takes more than {MAX_DIGITS} digits; round it")
    return number
