"""A field knows its values by value, exactly, and writes each in one way."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.answer import Choice, Grid
from edgeguard.answer.field import spell

MIXED = Choice(name="mixed", values=("left", "1", Decimal("1"), Decimal("0.40"), True, None))
SPEED = Grid(name="speed", step=Decimal("0.1"), multiples=range(-3, 11))
LEVEL = Grid(name="level", step=Decimal(10), multiples=range(0, 4))


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        (MIXED, "left", '"left"'),
        (MIXED, "1", '"1"'),
        (MIXED, 1, "1"),
        (MIXED, Decimal("0.4"), "0.40"),
        (MIXED, True, "true"),
        (MIXED, None, "null"),
        (SPEED, Decimal("0.3"), "0.3"),
        (SPEED, Decimal("0.300"), "0.3"),
        (SPEED, 1, "1.0"),
        (SPEED, Decimal("-0.0"), "0.0"),
        (SPEED, Decimal("-0.3"), "-0.3"),
        (LEVEL, 30, "30"),
        (LEVEL, Decimal("3E+1"), "30"),
    ],
)
def test_a_member_has_one_text(field: Choice | Grid, value: object, text: str) -> None:
    assert field.accepts(value)
    assert field.text(value) == text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (MIXED, "right"),
        (MIXED, False),
        (MIXED, 0.4),
        (MIXED, ["left"]),
        (MIXED, {}),
        (MIXED, Decimal("sNaN")),
        (SPEED, 0.3),
        (SPEED, "0.3"),
        (SPEED, True),
        (SPEED, None),
        (SPEED, Decimal("0.35")),
        (SPEED, Decimal("1.1")),
        (SPEED, Decimal("0.3" + "0" * 80 + "1")),
        (SPEED, Decimal("NaN")),
        (SPEED, Decimal("-Infinity")),
        (SPEED, Decimal("1E+99999999")),
        (SPEED, Decimal("1E-99999999")),
        (SPEED, 10**400),
        (LEVEL, 5),
    ],
)
def test_anything_else_is_no_member(field: Choice | Grid, value: object) -> None:
    assert not field.accepts(value)
    with pytest.raises(ValueError, match=field.name):
        field.text(value)


def test_a_huge_grid_is_counted_and_searched_without_being_listed() -> None:
    grid = Grid(name="n", step=Decimal("0.001"), multiples=range(10**12))
    assert len(grid) == 10**12
    assert grid.accepts(Decimal("999999999.999"))
    assert next(iter(grid)) == 0


@given(
    step=st.sampled_from(["0.1", "0.25", "3", "0.001", "1.5", "100"]),
    first=st.integers(-50, 50),
    count=st.integers(1, 40),
)
def test_every_value_of_a_grid_is_read_back_from_its_text_whatever_the_callers_precision(
    step: str, first: int, count: int
) -> None:
    grid = Grid(name="g", step=Decimal(step), multiples=range(first, first + count))
    with localcontext() as context:
        context.prec = 2
        texts = [spell(value) for value in grid]
        for multiple, text in enumerate(texts, start=first):
            value = json.loads(text, parse_float=Decimal)
            assert grid.text(value) == text
            context.prec = 50
            assert value == multiple * Decimal(step)
            context.prec = 2
    assert len(set(texts)) == len(grid) == count
