"""The caller's own wire: what it measures is judged by the one rule of standstill, noise and silence included."""

from __future__ import annotations

import pytest
from plant import plant, settings

from edgeguard.guard.rules import View
from edgeguard.guard.standstill import standstill_shown
from edgeguard.runtime.caller_wire import CallerWire
from edgeguard.types import Action, SetPoint

NOW_NS = 1_000_000_000
MOVING = SetPoint(axes={"linear": 0.5, "angular": 0.0, "gripper": 0.1}, action=Action.MOVE, life_ms=80)
UNSEEN = View(now_ns=NOW_NS, sight=None, timeout_ns=1)


def stands(wire: CallerWire) -> bool | None:
    link = wire.poll(now_ns=NOW_NS)
    return standstill_shown(settings().axes, link.feedback, link.echo, UNSEEN)


@pytest.fixture
def wire() -> CallerWire:
    return CallerWire(plant().axes)


@pytest.mark.parametrize(
    ("measured", "standing"),
    [
        ({"linear": 0.0, "angular": 0.0}, True),
        ({"linear": 0.003, "angular": -0.01}, True),  # odometry and gyroscope at rest
        ({"linear": 0.003, "angular": -0.01, "gripper": 0.07}, True),  # holds, wherever it is
        ({"linear": 0.1, "angular": 0.0}, False),
        ({"linear": None, "angular": 0.0}, None),  # no reading is not 0
        ({"linear": None, "angular": 0.4}, False),
    ],
)
def test_standstill_is_what_is_measured(wire, measured, standing):
    wire.measure(measured)
    assert stands(wire) is standing


def test_an_axis_that_is_never_measured_has_reached_its_last_set_point(wire):
    assert stands(wire) is True
    wire.transmit(MOVING, now_ns=NOW_NS)
    assert stands(wire) is False
    wire.measure({"linear": 0.0})
    assert stands(wire) is True


def test_a_set_point_is_taken_once(wire):
    assert wire.transmit(MOVING, now_ns=NOW_NS) == 0
    assert [wire.take(), wire.take()] == [MOVING, None]
