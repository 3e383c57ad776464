"""Clocks as rclpy has them: ROS time is the wall clock, steady time is not comparable with it."""

from __future__ import annotations

import time
from enum import Enum
from types import SimpleNamespace


class ClockType(Enum):
    ROS_TIME = 1
    STEADY_TIME = 3


class Time:
    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def to_msg(self) -> SimpleNamespace:
        return SimpleNamespace(sec=self.nanoseconds // 10**9, nanosec=self.nanoseconds % 10**9)


class Clock:
    def __init__(self, *, clock_type: ClockType) -> None:
        self._read = time.monotonic_ns if clock_type is ClockType.STEADY_TIME else time.time_ns

    def now(self) -> Time:
        return Time(self._read())
