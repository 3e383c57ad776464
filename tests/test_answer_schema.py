"""A schema is read as far as it is finite; everything else is refused by path and keyword."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from edgeguard.answer import read_schema, write_answer
from edgeguard.answer.field import spell
from edgeguard.errors import SchemaError


def one(schema: Any, **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}, **root}


def texts(schema: Any, **root: Any) -> list[str]:
    (field,) = read_schema(one(schema, **root))
    return [spell(value) for value in field]


NUMBER = {"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"enum": ["left", "right"]}, ['"left"', '"right"']),
        ({"enum": ["a", 1, 0.5, True, None], "description": "mixed"}, ['"a"', "1", "0.5", "true", "null"]),
        ({"enum": [1, 2], "type": "integer", "default": 1}, ["1", "2"]),
        ({"enum": ["a", None], "type": ["string", "null"]}, ['"a"', "null"]),
        ({"const": "only", "type": "string"}, ['"only"']),
        ({"const": "a", "enum": ["a"]}, ['"a"']),
        ({"const": None}, ["null"]),
        ({"type": "boolean"}, ["false", "true"]),
        ({"type": "integer", "minimum": 1, "maximum": 3}, ["1", "2", "3"]),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 4}, ["2", "3"]),
        ({"type": "integer", "minimum": 0.5, "maximum": Decimal("2.5")}, ["1", "2"]),
        ({"type": "integer", "minimum": -10, "maximum": 10, "multipleOf": 5}, ["-10", "-5", "0", "5", "10"]),
        ({"type": "integer", "minimum": 0, "maximum": 9, "multipleOf": 1.5}, ["0", "3", "6", "9"]),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": 0, "maximum": 2, "exclusiveMaximum": 9}, ["1", "2"]),
        (NUMBER, ["0.0", "0.5", "1.0"]),
        ({**NUMBER, "multipleOf": Decimal("0.50")}, ["0.0", "0.5", "1.0"]),
        ({**NUMBER, "minimum": 0.3, "multipleOf": 0.1}, ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0"]),
        ({**NUMBER, "maximum": 30, "multipleOf": 10}, ["0", "10", "20", "30"]),
        ({**NUMBER, "maximum": 0.0000003, "multipleOf": 1e-7}, ["0.0000000", "0.0000001", "0.0000002", "0.0000003"]),
        ({"anyOf": [NUMBER, {"type": "string"}], "title": "a decimal"}, ["0.0", "0.5", "1.0"]),
    ],
)
def test_a_finite_field_is_read_in_order(schema: dict[str, Any], expected: list[str]) -> None:
    assert texts(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/speed"},
        {"$ref": "#/$defs/by~1way~0of"},
        {"$ref": "#/$defs/speed", "default": 0.5, "description": "how fast"},
        {"allOf": [{"$ref": "#/$defs/speed"}], "default": 0.5},
        {"$ref": "#/$defs/open", "maximum": 1},
    ],
)
def test_a_local_reference_stands_for_its_target(schema: dict[str, Any]) -> None:
    definitions = {
        "speed": {"title": "Speed", **NUMBER},
        "by/way~of": {"$ref": "#/$defs/speed"},
        "open": {name: value for name, value in NUMBER.items() if name != "maximum"},
    }
    assert texts(schema, **{"$defs": definitions}) == ["0.0", "0.5", "1.0"]


def test_the_answer_itself_may_be_a_reference() -> None:
    schema = {"$ref": "#/$defs/Command", "$defs": {"Command": one({"type": "boolean"}, additionalProperties=False)}}
    assert [field.name for field in read_schema(schema)] == ["x"]


class Turn(str, Enum):
    LEFT = "left"
    RIGHT = "right"


class Gear(Enum):
    FIRST = 1
    SECOND = 2


class Command(BaseModel):
    """A docstring, which becomes a description."""

    model_config = ConfigDict(extra="forbid")
    turn: Turn
    back: Turn = Field(default=Turn.LEFT, description="where to look")
    gear: Gear = Gear.FIRST
    mood: Literal["calm", 1, None, True]
    kind: Literal["command"] = "command"
    horn: bool = False
    level: Annotated[int, Field(ge=0, lt=10)]
    speed: Annotated[Decimal, Field(ge=0, le=1, multiple_of=Decimal("0.1"))]
    angle: Annotated[float, Field(gt=-1, le=1, multiple_of=0.1)] = 0.5


def test_a_pydantic_model_works_as_it_is() -> None:
    fields = read_schema(Command.model_json_schema())
    assert [(field.name, len(field)) for field in fields] == [
        ("turn", 2),
        ("back", 2),
        ("gear", 2),
        ("mood", 4),
        ("kind", 1),
        ("horn", 2),
        ("level", 10),
        ("speed", 11),
        ("angle", 20),
    ]
    last = {field.name: list(field)[-1] for field in fields}
    command = Command.model_validate_json(write_answer(last, fields=fields))
    assert command.speed == 1
    assert command.turn is Turn.RIGHT


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        # unbounded: the keyword that would bound it
        ({"type": "string"}, "'enum'"),
        ({"type": "string", "maxLength": 3}, "'enum'"),
        ({"type": "integer"}, "'minimum', 'maximum'"),
        ({"type": "integer", "minimum": 0}, "'maximum'"),
        ({"type": "integer", "exclusiveMaximum": 9}, "'minimum'"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "'multipleOf'"),
        ({"type": "number"}, "'minimum', 'maximum', 'multipleOf'"),
        ({"type": "number", "multipleOf": 0.1, "exclusiveMinimum": 0}, "'maximum'"),
        ({"type": "array", "items": {"type": "boolean"}}, "a property of its own"),
        ({"type": "object", "properties": {}}, "to the answer itself"),
        ({"type": "null"}, "'const'"),
        ({"type": ["integer", "null"]}, "'enum'"),
        ({"type": "nonsense"}, "'enum'"),
        ({}, "'enum'"),
        (True, "'enum'"),
        ({"type": "integer", "minimum": 0, "maximum": 100_000}, "100,001 values.*'multipleOf'"),
        ({"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 1e-12}, "1,000,000,000,001 values"),
        ({"enum": list(range(100_001))}, "100,001 values"),
        # unsupported
        ({"type": "boolean", "not": {"const": True}}, "'not' beside 'boolean'"),
        ({"enum": ["a"], "pattern": "a"}, "'pattern' beside 'enum'"),
        ({"enum": [1, 2], "minimum": 2}, "'minimum' beside 'enum'"),
        ({"type": "integer", "minimum": 0, "maximum": 9, "maxmum": 5}, "'maxmum'"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "'anyOf' is not supported.*'enum'"),
        ({"allOf": [{"type": "boolean"}, {"type": "boolean"}]}, "'allOf' is not supported.*'enum'"),
        ({"enum": [["a"]]}, "nothing nests"),
        ({"enum": [{"a": 1}]}, "nothing nests"),
        ({"$ref": "other.json"}, "not local"),
        ({"$ref": "#/$defs/nowhere"}, "points at nothing"),
        ({"$ref": "#/$defs/loop"}, "leads back to itself"),
        ({"$ref": "#/$defs/whole", "minimum": 1}, "'minimum'"),
        # contradictions and nonsense
        ({"enum": []}, "at least one"),
        ({"enum": "left"}, "at least one"),
        ({"enum": [1, 1.0]}, "listed twice"),
        ({"enum": ["a", 1], "type": "string"}, "1 is not of 'type'"),
        ({"enum": [0.5], "type": "integer"}, "0.5 is not of 'type'"),
        ({"enum": [True], "type": "integer"}, "true is not of 'type'"),
        ({"enum": [None], "type": 5}, "null is not of 'type' 5"),
        ({"const": "b", "enum": ["a"]}, "'const'"),
        ({"const": float("nan")}, "not finite"),
        ({"const": "\ud800"}, "surrogate"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no multiple of 1"),
        ({"type": "number", "minimum": 0.1, "maximum": 0.4, "multipleOf": 0.5}, "no multiple of 0.5"),
        ({**NUMBER, "multipleOf": 0}, "multipleOf: 0 is not greater"),
        ({**NUMBER, "multipleOf": Decimal("-0.1")}, "multipleOf: -0.1 is not greater"),
        ({**NUMBER, "minimum": "0"}, "minimum: '0' is not a number"),
        ({**NUMBER, "exclusiveMinimum": True}, "exclusiveMinimum: True is not a number"),
        ({**NUMBER, "maximum": float("inf")}, "maximum: inf is not finite"),
        ({**NUMBER, "maximum": 10**400}, "maximum: .*more than 15 digits"),
        ({**NUMBER, "minimum": Decimal("1E-999999999")}, "more than 15 digits"),
        ({"const": Decimal("0.1234567890123456")}, "more than 15 digits"),
        (
            {"type": "number", "minimum": 10**10, "maximum": 10**10, "multipleOf": Decimal("0.00001")},
            "more than 15 digits",
        ),
    ],
)
def test_what_is_not_finite_is_refused_by_path_and_way_out(schema: Any, says: str) -> None:
    definitions = {
        "loop": {"$ref": "#/$defs/back"},
        "back": {"$ref": "#/$defs/loop"},
        "whole": {"type": "integer", "minimum": 0, "maximum": 9},
    }
    with pytest.raises(SchemaError, match=rf"(?s)^answer\.schema\.properties\.x.*{says}"):
        read_schema(one(schema, **{"$defs": definitions}))


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({}, "'properties'"),
        ({"type": "object", "properties": {}}, "at least one"),
        ({"type": "array", "properties": {"x": {"type": "boolean"}}}, "an object"),
        (one({"type": "boolean"}, additionalProperties=True), "'additionalProperties' to false"),
        (one({"type": "boolean"}, additionalProperties={"type": "boolean"}), "'additionalProperties' to false"),
        (one({"type": "boolean"}, patternProperties={}), "'patternProperties'"),
        (one({"type": "boolean"}, required=["x", "y"]), "no property 'y'"),
        (one({"type": "boolean"}, required="x"), "not a list"),
        (one({"type": "boolean"}, required=[["x"]]), "not a list of names"),
    ],
)
def test_the_answer_is_one_flat_object(schema: dict[str, Any], says: str) -> None:
    with pytest.raises(SchemaError, match=rf"^robot\.toml.*{says}"):
        read_schema(schema, where="robot.toml")


def test_everything_that_is_wrong_is_said_at_once() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "number"}}}
    with pytest.raises(SchemaError) as refusal:
        read_schema(schema)
    assert [problem.split(":")[0] for problem in refusal.value.problems] == [
        "answer.schema.properties.a",
        "answer.schema.properties.c",
    ]
