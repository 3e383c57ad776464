"""What each plan may answer: some of what the whole answer may be, checked at the start and at each answer."""

from __future__ import annotations

from decimal import Decimal

import pytest
from guard_rig import FAST, Rig
from plant import PLANT, plant, settings

from edgeguard.errors import ConfigError
from edgeguard.types import Cause, Source

CAUTIOUS = """
[[plan]]
name = "full"

[[plan]]
name = "cautious"
[plan.schema]
type = "object"
[plan.schema.properties]
grip = { const = false }
speed = SPEED
turn = { enum = ["straight"] }
"""
SLOW = "{ type = 'number', minimum = 0, maximum = 0.2, multipleOf = 0.2 }"


@pytest.mark.parametrize(
    ("speed", "problem"),
    [
        (SLOW, ""),
        ("{ enum = [0.1, -0.2] }", ""),
        ("{ type = 'number', minimum = 0, maximum = 0.2, multipleOf = 0.05 }", "'speed' may be 0.05, which"),
        ("{ type = 'number', minimum = 0.3, maximum = 0.6, multipleOf = 0.3 }", "'speed' may be 0.6, which"),
        ("{ type = 'integer', minimum = -1, maximum = 0 }", "'speed' may be -1, which"),
        ("{ enum = ['fast'] }", "'speed' may be \"fast\", which"),
        ("{ type = 'string' }", "plan[1].schema"),
    ],
)
def test_a_smaller_schema_has_some_of_the_whole_ones_values(speed: str, problem: str) -> None:
    text = PLANT + CAUTIOUS.replace("SPEED", speed)
    if not problem:
        assert list(settings(text).rung_fields) == ["full", "cautious"]
        return
    with pytest.raises(ConfigError) as caught:
        settings(text)
    assert any(problem in one for one in caught.value.problems), caught.value.problems


def test_a_field_that_the_whole_answer_has_not_is_refused() -> None:
    text = (PLANT + CAUTIOUS.replace("SPEED", SLOW)).replace("grip = { const = false }", "horn = { const = false }")
    with pytest.raises(ConfigError) as caught:
        settings(text)
    said = "\n".join(caught.value.problems)
    assert "answer.schema has no field 'horn'; it has: speed, turn, grip" in said
    assert "axis 'gripper' needs the field 'grip'" in said


def test_an_axis_that_multiplies_needs_both_of_its_fields() -> None:
    text = (PLANT + CAUTIOUS.replace("SPEED", SLOW)).replace('turn = { enum = ["straight"] }', "")
    with pytest.raises(ConfigError, match="axis 'angular' needs the field 'turn'"):
        settings(text)
    times = 'source = { field = "speed", times = { field = "turn", values = { left = 1, straight = 1, right = 1 } } }'
    with pytest.raises(ConfigError, match="axis 'linear' needs the field 'turn'"):
        settings(text.replace('source = { field = "speed" }', times))


SAFE = {"speed": Decimal("0.2"), "turn": "straight", "grip": False}


@pytest.mark.parametrize(
    ("rung", "values", "detail"),
    [
        ("full", FAST, ""),
        ("full", SAFE, ""),
        ("cautious", SAFE, ""),
        ("cautious", FAST, "speed"),
        ("cautious", {**SAFE, "turn": "left"}, "turn"),
        ("", SAFE, "there is no plan ''"),
        ("swift", SAFE, "there is no plan 'swift'"),
    ],
)
def test_an_answer_is_checked_against_what_its_own_rung_may_say(
    rung: str, values: dict[str, object], detail: str
) -> None:
    rig = Rig(settings(PLANT + CAUTIOUS.replace("SPEED", SLOW)))
    rig.arm()
    rig.observe()
    record = rig.answer(values, rung=rung).record
    assert record is not None
    assert record.answer is not None
    assert record.answer.rung == rung
    if detail:
        assert record.decision.causes == (Cause.INVALID_ANSWER,)
        assert detail in record.decision.detail
    else:
        assert record.decision.source is Source.MODEL


def test_a_configuration_without_plans_knows_no_rung() -> None:
    rig = Rig().arm()
    rig.observe()
    record = rig.answer(rung="full").record
    assert record is not None
    assert record.decision.causes == (Cause.INVALID_ANSWER,)
    assert plant().rungs[0].name == ""
