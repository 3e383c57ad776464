"""The operator: a route, ordinary words, patience."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.demo.operator import PHRASES, ROUTE, Operator, Utterance, Waypoint, Wish
from edgeguard.demo.world import Pose, World
from edgeguard.types import Value

PERIOD_STEPS, STEP_NS = 20, 10 * NS_PER_MS
AHEAD = (Waypoint(x=3.0, y=0.0), Waypoint(x=0.0, y=0.0))


def walk(*, seconds: int, seed: int = 1, deaf: bool = False) -> tuple[Operator, World, list[str]]:
    """The route in virtual time, with a robot that understands every word at once and obeys 100 ms later."""
    operator, world, said = Operator(seed=seed), World(), []
    linear = angular = 0.0
    wanted, coming = (0.0, 0.0), (0.0, 0.0)
    for step in range(seconds * 100):
        if step % PERIOD_STEPS == 0:
            words = operator.watch(world.pose, linear_m_s=linear, angular_rad_s=angular, now_ns=step * STEP_NS)
            if not said or said[-1] != words.text:
                said.append(words.text)
            coming = (0.0, 0.0) if deaf else motion(words.wish)
        if step % PERIOD_STEPS == PERIOD_STEPS // 2:
            wanted = coming
        linear += max(-0.01, min(0.01, wanted[0] - linear))
        angular += max(-0.04, min(0.04, wanted[1] - angular))
        world.move(t_ns=step * STEP_NS, linear_m_s=linear, angular_rad_s=angular)
    return operator, world, said


def motion(wish: Wish) -> tuple[float, float]:
    move, least = wish.value
    speed = max(least, 0.3)
    return {"forward": 1.0, "back": -0.6}.get(move, 0.0) * speed, {"left": 2.0, "right": -2.0}.get(move, 0.0) * speed


def test_the_route_can_be_walked_without_touching_a_wall() -> None:
    operator, world, _ = walk(seconds=100)
    assert operator.reached >= len(ROUTE)
    assert world.bumps == 0
    assert max(x for x, _ in world.path) > 5.5, "it has seen the third room"


def test_the_same_seed_says_the_same() -> None:
    assert walk(seconds=30)[2] == walk(seconds=30)[2]
    assert walk(seconds=30)[2] != walk(seconds=30, seed=2)[2]


def test_it_says_it_in_all_other_words_when_nothing_comes_of_it() -> None:
    _, _, said = walk(seconds=12, deaf=True)
    count = len(PHRASES[Wish.FORWARD])
    assert sorted(said[1 : count + 1]) == sorted(PHRASES[Wish.FORWARD])
    assert 0.8 < 12 / len(said) < 3, "neither nagging nor silent"


@pytest.mark.parametrize(
    ("heading", "wish"),
    [(0.0, Wish.FAST), (0.2, Wish.FAST), (-1.0, Wish.LEFT), (1.0, Wish.RIGHT), (3.0, Wish.RIGHT), (-3.0, Wish.LEFT)],
)
def test_what_is_wanted_depends_on_where_the_robot_faces(heading: float, wish: Wish) -> None:
    operator = Operator(seed=1, route=AHEAD)
    pose = Pose(x=0, y=0, heading=heading)
    assert operator.watch(pose, linear_m_s=0, angular_rad_s=0, now_ns=NS_PER_S).wish is wish


def test_what_is_close_behind_is_reached_by_going_back() -> None:
    operator = Operator(seed=1, route=(Waypoint(x=1.2, y=0.0),))
    pose = Pose(x=0, y=0, heading=math.pi)
    assert operator.watch(pose, linear_m_s=0, angular_rad_s=0, now_ns=NS_PER_S).wish is Wish.BACK


def test_a_turn_ends_before_the_robot_has_turned_too_far() -> None:
    operator = Operator(seed=1, route=AHEAD)
    operator.say(Utterance(text="take a left", wish=Wish.LEFT), now_ns=0)
    turning = operator.watch(Pose(x=0, y=0, heading=-0.8), linear_m_s=0, angular_rad_s=1.0, now_ns=NS_PER_S)
    assert turning.wish is Wish.LEFT
    nearly = operator.watch(Pose(x=0, y=0, heading=-0.3), linear_m_s=0, angular_rad_s=1.0, now_ns=2 * NS_PER_S)
    assert nearly.wish is Wish.FAST


def test_while_it_speaks_it_says_nothing_else() -> None:
    operator = Operator(seed=1, route=AHEAD)
    operator.say(Utterance(text="well …", wish=Wish.FORWARD), now_ns=0, takes_ns=2 * NS_PER_S)
    behind = Pose(x=0, y=0, heading=2.0)
    assert operator.watch(behind, linear_m_s=0, angular_rad_s=0, now_ns=NS_PER_S).text == "well …"
    assert operator.watch(behind, linear_m_s=0, angular_rad_s=0, now_ns=2 * NS_PER_S).wish is Wish.RIGHT


def test_where_it_waits_the_robot_is_told_to_stand_or_nothing() -> None:
    operator = Operator(seed=1, route=(Waypoint(x=0.1, y=0.0, wait=True), Waypoint(x=3.0, y=0.0)))
    pose = Pose(x=0, y=0, heading=0)
    assert operator.watch(pose, linear_m_s=0.3, angular_rad_s=0, now_ns=NS_PER_S).wish in (Wish.WAIT, Wish.TALK)
    assert operator.reached == 1


@pytest.mark.parametrize(
    ("wish", "answer", "met"),
    [
        (Wish.FAST, {"move": "forward", "speed": 0.5}, True),
        (Wish.FAST, {"move": "forward", "speed": Decimal("0.4")}, True),
        (Wish.FAST, {"move": "forward", "speed": 0.3}, False),
        (Wish.FORWARD, {"move": "forward", "speed": 0.1}, True),
        (Wish.FORWARD, {"move": "left", "speed": 0.3}, False),
        (Wish.WAIT, {"move": "stop", "speed": 0.5}, True),
        (Wish.WAIT, {"move": "none", "speed": 0.3}, False),
        (Wish.TALK, {"move": "none", "speed": 0.3}, True),
        (Wish.TALK, {"move": "forward", "speed": 0.3}, False),
    ],
)
def test_an_answer_is_what_was_meant_or_not(wish: Wish, answer: dict[str, Value], met: bool) -> None:
    assert wish.met_by(answer) is met
