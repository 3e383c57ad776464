"""Stopping distances, the guard-death path included, and what keeps a clearance from being kept."""

from __future__ import annotations

import pytest
from plant import PLANT, plant, settings

from edgeguard.errors import ConfigError
from edgeguard.guard.stopping import GUARD_DEATH, REST_MARGIN, StoppingDistance, stopping_distances, stopping_problems

WIRE_NS = 3_000_000


def test_each_way_to_stop_has_its_distance():
    comfortable, emergency, dead = stopping_distances(plant(), wire_ns=WIRE_NS)
    assert comfortable.reaction_s == pytest.approx(0.420 + 0.020 + 0.003 + 0.005)
    assert comfortable.distance == pytest.approx(0.5 * 0.448 + 0.5 * (0.5 / 1 + 1 / 10) / 2)
    assert emergency.distance == pytest.approx(0.5 * 0.448 + 0.5 * (0.5 / 2 + 2 / 20) / 2)
    assert dead.way.startswith(GUARD_DEATH)
    assert dead.reaction_s == pytest.approx(0.080 + 0.003 + 0.005)
    assert dead.distance == pytest.approx(0.5 * 0.088 + 0.5**2 / 2)
    assert all(one.fits and one.axis == "linear" for one in (comfortable, emergency, dead))
    assert stopping_problems(plant(), wire_ns=WIRE_NS) == []


def test_the_top_speed_is_counted_from_the_safe_value():
    text = PLANT.replace("max = 0.5\nrate_up = 1.0", "max = 0.5\nsafe = 0.1\nrate_up = 1.0")
    comfortable, *_ = stopping_distances(plant(text), wire_ns=WIRE_NS)
    assert comfortable.distance == pytest.approx(0.4 * 0.448 + 0.4 * (0.4 / 1 + 1 / 10) / 2)
    backward = plant(text.replace("min = -0.2", "min = -0.8"))
    assert stopping_distances(backward, wire_ns=WIRE_NS)[2].distance == pytest.approx(0.9 * 0.088 + 0.9**2 / 2)


def test_a_clearance_that_is_too_small_is_refused_at_load_with_the_way_out():
    with pytest.raises(ConfigError, match=r"comfortable stop: it stops within 0.374.*clearance is 0.3; lower max"):
        settings(PLANT.replace("clearance = 1.0", "clearance = 0.3"))


def test_a_clearance_needs_the_motor_controllers_deceleration():
    text = PLANT.replace("[link.controller_decel]\nlinear = 1.0", "")
    (problem,) = stopping_problems(plant(text), wire_ns=WIRE_NS)
    assert "link.controller_decel.linear" in problem
    assert len(stopping_distances(plant(text), wire_ns=WIRE_NS)) == 2


def test_a_clearance_needs_something_to_come_to_rest_at():
    text = PLANT.replace('safe = "hold"', 'safe = "hold"\nclearance = 1')
    (problem,) = stopping_problems(plant(text), wire_ns=WIRE_NS)
    assert "'gripper'" in problem
    assert "hold" in problem


@pytest.mark.parametrize(("distance", "fits"), [(0.7, True), (0.7000001, False)])
def test_a_distance_fits_up_to_the_clearance(distance, fits):
    one = StoppingDistance(axis="linear", way="a stop", reaction_s=0.1, distance=distance, clearance=0.7)
    assert one.fits is fits


def test_an_unmeasured_stop_is_given_half_as_long_again():
    assert REST_MARGIN == 1.5
