"""The message types that the guide's node uses, with ROS' fields and defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace


def _stamp() -> SimpleNamespace:
    return SimpleNamespace(sec=0, nanosec=0)


def _twist() -> SimpleNamespace:
    return SimpleNamespace(linear=SimpleNamespace(x=0.0), angular=SimpleNamespace(z=0.0))


@dataclass
class Header:
    stamp: SimpleNamespace = field(default_factory=_stamp)
    frame_id: str = ""


@dataclass
class TwistStamped:
    header: Header = field(default_factory=Header)
    twist: SimpleNamespace = field(default_factory=_twist)


@dataclass
class Odometry:
    header: Header = field(default_factory=Header)
    twist: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(twist=_twist()))


@dataclass
class LaserScan:
    header: Header = field(default_factory=Header)
    angle_min: float = -1.0
    angle_increment: float = 0.25
    range_min: float = 0.1
    range_max: float = 8.0
    ranges: tuple[float, ...] = (0.5, 0.5, 2.4, 2.2, 2.0, 2.2, 2.4, 0.5, 0.5)


@dataclass
class String:
    data: str = ""
