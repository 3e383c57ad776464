"""Three rooms, a robot in them, and its three range sensors. Pure: motion and time are handed in.

Metres, radians (anticlockwise from the x axis), metres and radians per second, monotonic nanoseconds. The robot is a
disc that turns on the spot; along a wall it slides, into one it does not go. What it measures is what the motor
controller's simulator reports, so the world is integrated from that alone: the same motion gives the same path. No
noise, no slip, and no knowledge of models, guards or wires.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgeguard.clock import NS_PER_S

ROBOT_RADIUS_M = 0.18
RANGE_LIMIT_M = 4.0
"""Farther is as far, as with the usual time-of-flight sensors."""

_RAYS = {"front_m": 0.0, "left_m": math.pi / 2, "right_m": -math.pi / 2}
_LONGEST_STEP_NS = NS_PER_S // 10
"""Between two reports of motion; after a longer gap (a report got lost) the robot is taken to have stood still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """A straight wall without thickness."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose:
    x: float
    y: float
    heading: float

    def bearing_to(self, x: float, y: float) -> float:
        """How far to turn left to face the point, between -pi and pi."""
        return wrapped(math.atan2(y - self.y, x - self.x) - self.heading)

    def distance_to(self, x: float, y: float) -> float:
        return math.hypot(x - self.x, y - self.y)


def _walls(*corners: tuple[float, float]) -> tuple[Wall, ...]:
    return tuple(Wall(x1=x1, y1=y1, x2=x2, y2=y2) for (x1, y1), (x2, y2) in pairwise(corners))


WIDTH_M, HEIGHT_M = 7.5, 4.0

ROOMS: tuple[Wall, ...] = (
    *_walls((0, 0), (WIDTH_M, 0), (WIDTH_M, HEIGHT_M), (0, HEIGHT_M), (0, 0)),
    *_walls((2.5, 0), (2.5, 1.3)),  # the first doorway: y from 1.3 to 2.7
    *_walls((2.5, 2.7), (2.5, HEIGHT_M)),
    *_walls((5.0, 0), (5.0, 1.9)),  # the second: y from 1.9 to 3.3
    *_walls((5.0, 3.3), (5.0, HEIGHT_M)),
)

START = Pose(x=0.8, y=0.8, heading=math.pi / 2)


class World:
    """The robot's pose, what it senses, and what it ran into."""

    def __init__(self, *, walls: Sequence[Wall] = ROOMS, start: Pose = START) -> None:
        self._walls = tuple(walls)
        self._at_ns: int | None = None
        self._linear_m_s = 0.0
        self._angular_rad_s = 0.0
        self.pose = start
        self.path: list[tuple[float, float]] = [(start.x, start.y)]
        self.bumps = 0
        self._touching = False

    def move(self, *, t_ns: int, linear_m_s: float, angular_rad_s: float) -> None:
        """The wheels report their motion at ``t_ns``; between two reports it changed evenly."""
        if self._at_ns is not None and 0 < t_ns - self._at_ns <= _LONGEST_STEP_NS:
            dt_s = (t_ns - self._at_ns) / NS_PER_S
            turned = (self._angular_rad_s + angular_rad_s) / 2 * dt_s
            gone = (self._linear_m_s + linear_m_s) / 2 * dt_s
            self._advance(gone, turned)
        self._at_ns, self._linear_m_s, self._angular_rad_s = t_ns, linear_m_s, angular_rad_s

    def ranges(self) -> Mapping[str, float]:
        """What the sensors in front, left and right read, in metres from the middle of the robot."""
        return {name: self._range(self.pose.heading + angle) for name, angle in _RAYS.items()}

    def _advance(self, gone: float, turned: float) -> None:
        pose = self.pose
        middle = pose.heading + turned / 2
        x, y = pose.x + gone * math.cos(middle), pose.y + gone * math.sin(middle)
        ways = ((x, y), (x, pose.y), (pose.x, y))  # freely, or along a wall
        x, y = next((way for way in ways if self._is_free(*way)), (pose.x, pose.y))
        touching = (x, y) != ways[0]
        self.bumps += touching and not self._touching
        self._touching = touching
        self.pose = Pose(x=x, y=y, heading=wrapped(pose.heading + turned))
        if math.dist(self.path[-1], (x, y)) >= 0.05:
            self.path.append((x, y))

    def _is_free(self, x: float, y: float) -> bool:
        return all(_distance(wall, x, y) >= ROBOT_RADIUS_M for wall in self._walls)

    def _range(self, direction: float) -> float:
        return min((_hit(wall, self.pose, direction) for wall in self._walls), default=RANGE_LIMIT_M)


def wrapped(angle: float) -> float:
    """The same direction between -pi and pi."""
    return math.remainder(angle, math.tau)


def _hit(wall: Wall, pose: Pose, direction: float) -> float:
    """How far a ray goes before it meets the wall: Cramer's rule on pose + r·ray = end + s·wall, 0 <= s <= 1."""
    ray_x, ray_y = math.cos(direction), math.sin(direction)
    along_x, along_y = wall.x2 - wall.x1, wall.y2 - wall.y1
    across = ray_x * along_y - ray_y * along_x
    if abs(across) < 1e-12:  # parallel
        return RANGE_LIMIT_M
    from_x, from_y = wall.x1 - pose.x, wall.y1 - pose.y
    r = (from_x * along_y - from_y * along_x) / across
    s = (from_x * ray_y - from_y * ray_x) / across
    return min(r, RANGE_LIMIT_M) if r >= 0 and -1e-9 <= s <= 1 + 1e-9 else RANGE_LIMIT_M


def _distance(wall: Wall, x: float, y: float) -> float:
    """From the point to the nearest point of the wall."""
    along_x, along_y = wall.x2 - wall.x1, wall.y2 - wall.y1
    length2 = along_x**2 + along_y**2
    s = 0.0 if length2 == 0 else max(0.0, min(1.0, ((x - wall.x1) * along_x + (y - wall.y1) * along_y) / length2))
    return math.hypot(x - wall.x1 - s * along_x, y - wall.y1 - s * along_y)
