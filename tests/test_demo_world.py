"""The rooms, the robot's motion in them, and what its sensors see."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.clock import NS_PER_MS
from edgeguard.demo.floor_plan import BEGIN, ROBOT, floor_plan
from edgeguard.demo.world import RANGE_LIMIT_M, ROBOT_RADIUS_M, ROOMS, START, Pose, Wall, World, wrapped

STEP_NS = 10 * NS_PER_MS
BOX = (
    Wall(x1=0, y1=0, x2=2, y2=0),
    Wall(x1=2, y1=0, x2=2, y2=2),
    Wall(x1=2, y1=2, x2=0, y2=2),
    Wall(x1=0, y1=2, x2=0, y2=0),
)


def drive(world: World, *, seconds: float, linear: float = 0.0, angular: float = 0.0, from_ns: int = STEP_NS) -> int:
    steps = round(seconds * 100)
    for step in range(steps + 1):
        world.move(t_ns=from_ns + step * STEP_NS, linear_m_s=linear, angular_rad_s=angular)
    return from_ns + steps * STEP_NS


def test_straight_motion_goes_where_the_robot_faces() -> None:
    world = World(walls=(), start=Pose(x=0, y=0, heading=math.pi / 2))
    drive(world, seconds=2, linear=0.5)
    assert (world.pose.x, world.pose.y) == pytest.approx((0, 1))


def test_it_turns_left_for_a_positive_rate() -> None:
    world = World(walls=(), start=Pose(x=0, y=0, heading=0))
    drive(world, seconds=1, angular=0.5)
    assert world.pose.heading == pytest.approx(0.5)


def test_an_arc_closes_to_a_circle() -> None:
    world = World(walls=(), start=Pose(x=0, y=0, heading=0))
    drive(world, seconds=math.tau, linear=0.5, angular=1.0)
    assert (world.pose.x, world.pose.y) == pytest.approx((0, 0), abs=0.01)


def test_the_motion_between_two_reports_is_taken_to_change_evenly() -> None:
    world = World(walls=(), start=Pose(x=0, y=0, heading=0))
    world.move(t_ns=1, linear_m_s=0.0, angular_rad_s=0.0)
    world.move(t_ns=1 + STEP_NS, linear_m_s=1.0, angular_rad_s=0.0)
    assert world.pose.x == pytest.approx(0.005)


def test_it_does_not_guess_what_happened_while_nothing_was_reported() -> None:
    world = World(walls=(), start=Pose(x=0, y=0, heading=0))
    world.move(t_ns=1, linear_m_s=1.0, angular_rad_s=0.0)
    world.move(t_ns=1 + 200 * NS_PER_MS, linear_m_s=1.0, angular_rad_s=0.0)
    assert world.pose.x == 0


def test_a_wall_stops_it_and_counts_once() -> None:
    world = World(walls=BOX, start=Pose(x=1, y=1, heading=0))
    drive(world, seconds=5, linear=0.5)
    assert world.pose.x == pytest.approx(2 - ROBOT_RADIUS_M, abs=0.01)
    assert world.bumps == 1


def test_along_a_wall_it_slides() -> None:
    world = World(walls=BOX, start=Pose(x=1, y=2 - ROBOT_RADIUS_M - 0.01, heading=0.3))
    drive(world, seconds=1, linear=0.5)
    assert world.pose.x == pytest.approx(1 + 0.5 * math.cos(0.3), abs=0.01)
    assert world.pose.y <= 2 - ROBOT_RADIUS_M
    assert world.bumps == 1


@pytest.mark.parametrize(
    ("heading", "front", "left", "right"), [(0, 1.5, 1.2, 0.8), (math.pi / 2, 1.2, 0.5, 1.5), (math.pi, 0.5, 0.8, 1.2)]
)
def test_ranges_are_seen_from_where_the_robot_faces(heading: float, front: float, left: float, right: float) -> None:
    ranges = World(walls=BOX, start=Pose(x=0.5, y=0.8, heading=heading)).ranges()
    assert (ranges["front_m"], ranges["left_m"], ranges["right_m"]) == pytest.approx((front, left, right))


def test_nothing_in_reach_reads_as_the_limit() -> None:
    assert set(World(walls=(), start=START).ranges().values()) == {RANGE_LIMIT_M}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(-1.5, 1.5)), max_size=12))
def test_whatever_it_is_told_it_stays_between_the_walls(legs: list[tuple[float, float]]) -> None:
    world, at_ns = World(), STEP_NS
    for linear, angular in legs:
        at_ns = drive(world, seconds=1, linear=linear, angular=angular, from_ns=at_ns)
    assert 0 < world.pose.x < 7.5
    assert 0 < world.pose.y < 4.0
    assert all(0 <= distance <= RANGE_LIMIT_M for distance in world.ranges().values())


@pytest.mark.parametrize("angle", [0.0, 3.0, -3.0, 4.0, 40.0, -40.0])
def test_a_wrapped_angle_is_the_same_direction(angle: float) -> None:
    assert -math.pi <= wrapped(angle) <= math.pi
    assert math.cos(wrapped(angle)) == pytest.approx(math.cos(angle))


def test_the_plan_shows_the_rooms_and_the_way() -> None:
    lines = floor_plan([(0.8, 0.8), (0.8, 1.5), (1.5, 2.0)], Pose(x=3.0, y=2.0, heading=0), walls=ROOMS)
    assert lines[0] == "┌───────────────────┬───────────────────┬───────────────────┐"
    assert lines[-1] == "└───────────────────┴───────────────────┴───────────────────┘"
    assert len({len(line) for line in lines}) == 1
    drawn = "".join(lines)
    assert (drawn.count(BEGIN), drawn.count(ROBOT), drawn.count("·")) == (1, 1, 2)
    assert lines.index(next(line for line in lines if ROBOT in line)) < len(lines) - 1 - 2.0 / 0.5
