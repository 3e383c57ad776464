"""The guard as a ROS 2 node: a laser scan, odometry and the operator's words in, TwistStamped out (loop mode).

    python -m edgeguard.guide.ros_node robot.toml --profile robot.profile.json --ros-args -r cmd_vel:=cmd_vel_guarded

=============  =========================  ===============================================================
topic          type                       what
=============  =========================  ===============================================================
``scan``       sensor_msgs/LaserScan      the nearest return within ±20° of the front is ``front_m``
``said``       std_msgs/String            what the operator says
``odom``       nav_msgs/Odometry          what the robot does; a stop starts from it
``cmd_vel``    geometry_msgs/TwistStamped the command, once per tick
=============  =========================  ===============================================================

**Where it sits.** In front of twist_mux, as one of its inputs, below the joystick: a person's hand wins. While it stops
the robot it publishes zeros and so keeps its place: nothing of a lower priority gets through the mux, which is meant.
Nothing that changes a velocity (a smoother, a scaler) may come after it: the envelope is the last gate. In the mux'
file: ``guarded: {topic: cmd_vel_guarded, timeout: 0.1, priority: 50}``, with ``use_stamped: true``.

**What stops the robot when this node is dead.** A TwistStamped carries no life, so that is ``cmd_vel_timeout`` of the
controller behind (diff_drive_controller compares the stamp with its own clock), and the mux' ``timeout``. Both must
exceed the tick, or the robot stops between two commands. From three ticks on a late one does no harm; the upper bound
is how long the robot may drive blindly. 0.1 s here; diff_drive_controller's default is 0.5 s, at full speed.

**Time.** A ROS stamp is of another clock than the guard's, so observations are handed over by their age. A stamp of the
future, of more than a minute ago (a simulator's: start with ``use_sim_time``), or none, is no observation. The tick
runs on the steady clock, so that no set of the wall clock holds it up.

**Priority.** The model takes every core, and a tick more than a tick late is a safe decision: start the node with
``chrt --reset-on-fork --fifo 40``.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from edgeguard import LoopGuard
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.config import load_config
from edgeguard.errors import EdgeguardError
from edgeguard.types import Action, SetPoint

FRONT_RAD = math.radians(20)
ODOMETRY_MS = 200.0
"""Older odometry is no reading."""

FOREIGN_MS = 60_000.0
"""An older stamp is of another clock."""

SLOWER = 1.1
"""The timer is a tenth slower than the tick, so that every call finds one due."""


def front_m(scan: Any) -> float | None:
    """The nearest valid return of a LaserScan within ``FRONT_RAD`` of its x axis; ``None`` when there is none."""
    valid = [
        distance
        for index, distance in enumerate(scan.ranges)
        if abs(scan.angle_min + index * scan.angle_increment) <= FRONT_RAD
        and scan.range_min <= distance <= scan.range_max  # NaN and infinity fail too
    ]
    return min(valid, default=None)


def age_ms(stamp: Any, now_ns: int) -> float | None:
    """How old a ``builtin_interfaces/Time`` is on the clock that stamps; ``None``: missing, to come or foreign."""
    stamp_ns = stamp.sec * NS_PER_S + stamp.nanosec
    age = ms_from_ns(now_ns - stamp_ns)
    return age if stamp_ns > 0 and 0 <= age < FOREIGN_MS else None


def measured(odometry: Any, now_ns: int) -> Mapping[str, float | None]:
    """What the axes do by an Odometry; no reading when there is none, or an old one."""
    age = None if odometry is None else age_ms(odometry.header.stamp, now_ns)
    if age is None or age > ODOMETRY_MS:
        return {"linear": None, "angular": None}
    twist = odometry.twist.twist
    return {"linear": twist.linear.x, "angular": twist.angular.z}


def fill(message: Any, command: SetPoint, *, stamp: Any) -> Any:
    """``command`` as a TwistStamped. ROS knows no *hold* and no *torque off*: both are zeros."""
    message.header.stamp = stamp
    message.header.frame_id = "base_link"
    if command.action in (Action.MOVE, Action.STOP):
        message.twist.linear.x = command.axes["linear"]
        message.twist.angular.z = command.axes["angular"]
    return message


class GuardNode:
    """The callbacks. They run one after the other (the default executor) and none of them waits."""

    def __init__(self, node: Any, guard: LoopGuard, *, tick_s: float) -> None:
        from geometry_msgs.msg import TwistStamped
        from nav_msgs.msg import Odometry
        from rclpy.clock import Clock, ClockType
        from rclpy.qos import qos_profile_sensor_data
        from sensor_msgs.msg import LaserScan
        from std_msgs.msg import String

        self._node, self._guard, self._twist = node, guard, TwistStamped
        self._said: tuple[str, int] | None = None
        self._odometry: Any = None
        self._publisher = node.create_publisher(TwistStamped, "cmd_vel", 1)
        node.create_subscription(LaserScan, "scan", self._on_scan, qos_profile_sensor_data)
        node.create_subscription(Odometry, "odom", self._on_odometry, qos_profile_sensor_data)
        node.create_subscription(String, "said", self._on_said, 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(tick_s * SLOWER, self._on_tick, clock=steady)

    def _on_said(self, message: Any) -> None:
        self._said = message.data, self._now_ns()  # a String has no stamp: it was said as it came

    def _on_odometry(self, message: Any) -> None:
        self._odometry = message

    def _on_scan(self, message: Any) -> None:
        """A scan is an observation, with the last words beside it; before anybody has spoken there is nothing to do."""
        now_ns = self._now_ns()
        age = age_ms(message.header.stamp, now_ns)
        if age is None:
            warning = (
                "a scan without a stamp of the last minute: are the clocks synchronised, is use_sim_time the same?"
            )
            self._node.get_logger().warning(warning, throttle_duration_sec=5.0)
        elif self._said is not None:
            said, said_ns = self._said
            older_ms = max(0.0, ms_from_ns(now_ns - said_ns) - age)
            fields = {"said": said, "front_m": front_m(message)}
            self._guard.submit(fields, age_ms=age, field_ages_ms={"said": older_ms})

    def _on_tick(self) -> None:
        command = self._guard.tick(measured=measured(self._odometry, self._now_ns()))
        if command is not None:
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(fill(self._twist(), command, stamp=stamp))
        for event in self._guard.events():
            self._node.get_logger().info(f"{event.name}: {event.detail}")

    def _now_ns(self) -> int:
        return int(self._node.get_clock().now().nanoseconds)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--profile", type=Path, required=True, help="what edgeguard calibrate wrote")
    parser.add_argument("--worker", default="", help="another model process, as of edgeguard run")
    arguments, for_ros = parser.parse_known_args(argv)
    try:
        import rclpy
        from rclpy.executors import ExternalShutdownException
    except ImportError:
        print(f"{parser.prog}: no rclpy here: source a ROS 2 installation first", file=sys.stderr)
        return 1
    rclpy.init(args=[parser.prog, *for_ros])
    node = rclpy.create_node("edgeguard")
    try:
        with (
            LoopGuard.start(arguments.config, profile=arguments.profile, worker=shlex.split(arguments.worker)) as guard,
            contextlib.suppress(KeyboardInterrupt, ExternalShutdownException),
        ):
            GuardNode(node, guard, tick_s=load_config(arguments.config).timing.tick_ns / NS_PER_S)
            rclpy.spin(node)
    except EdgeguardError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
