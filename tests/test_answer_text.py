"""An answer is read strictly: every field once, nothing else, exact values."""

from __future__ import annotations

from decimal import Decimal

import pytest

from edgeguard.answer import Choice, Grid, check_values, parse_answer, write_answer
from edgeguard.errors import AnswerError, IncompleteAnswerError

FIELDS = (
    Choice(name="turn", values=("left", 'a "b" \\ ü')),
    Grid(name="speed", step=Decimal("0.1"), multiples=range(0, 11)),
)


def test_the_style_is_compact_and_in_the_fields_order() -> None:
    assert write_answer({"speed": Decimal("0.40"), "turn": "left"}, fields=FIELDS) == '{"turn":"left","speed":0.4}'


@pytest.mark.parametrize("turn", ["left", 'a "b" \\ ü'])
def test_what_is_written_is_read_back(turn: str) -> None:
    values = {"turn": turn, "speed": Decimal("1.0")}
    assert parse_answer(write_answer(values, fields=FIELDS), fields=FIELDS) == values


def test_numbers_come_as_exact_decimals() -> None:
    speed = parse_answer('{ "speed": 0.3, "turn": "left" }', fields=FIELDS)["speed"]
    assert isinstance(speed, Decimal)
    assert speed == Decimal("0.3")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not JSON"),
        ('{"turn":"left","speed":0.4', "not JSON"),
        ("[1]", "not an object"),
        ("[" * 100_000, "not JSON"),
        ('{"turn":"left","speed":0.4,"turn":"left"}', "stands twice"),
        ('{"turn":"left","speed":0.4,"extra":1}', "'extra'"),
        ('{"turn":"up","speed":0.4}', "'turn' is 'up'"),
        ('{"turn":"left","speed":0.45}', "'speed'"),
        ('{"turn":"left","speed":1.1}', "'speed'"),
        ('{"turn":"left","speed":1e99999999}', "'speed'"),
        ('{"turn":"left","speed":NaN}', "NaN"),
        ('{"turn":"left","speed":-Infinity}', "-Infinity"),
        ('{"turn":"left","speed":[0.4]}', "'speed'"),
    ],
)
def test_an_invalid_answer_is_refused_and_says_why(text: str, says: str) -> None:
    with pytest.raises(AnswerError, match=says):
        parse_answer(text, fields=FIELDS)


def test_a_missing_field_is_told_apart_from_an_invalid_one() -> None:
    with pytest.raises(IncompleteAnswerError, match="'speed'"):
        check_values({"turn": "left"}, fields=FIELDS)
    with pytest.raises(AnswerError) as refusal:
        check_values({"turn": "left", "speed": 0.4}, fields=FIELDS)  # a binary float
    assert not isinstance(refusal.value, IncompleteAnswerError)
