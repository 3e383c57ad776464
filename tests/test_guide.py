"""The guide's four programs, each run as it is shipped, on a simulated motor controller and with a scripted model."""

from __future__ import annotations

import json
import math
import pydoc
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import wait_for
from robot import Robot
from service_rig import Manager, ServedRobot, served

import edgeguard
from edgeguard.guide import loop_mode, ros_node, wire_mode
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.runtime.assembly import assemble
from edgeguard.types import Action, SetPoint

GUIDE = Path(str(resources.files("edgeguard.guide")))
PROGRAMS = ("loop_mode", "wire_mode", "socket_client", "ros_node")
LINES = {"format": "v {linear:.3f} {angular:.3f} {life_ms}\n", "feedback": "odom {linear} {angular}"}
AXES = (MotorAxis(name="linear", accel=4, decel=4), MotorAxis(name="angular", accel=8, decel=8))


class GuideRobot(Robot):
    """The guide's own configuration, three times as fast."""

    def __init__(self, folder: Path, motors: Simulator) -> None:
        super().__init__(folder, motors)
        slow = (GUIDE / "robot.toml").read_text()
        fast = slow.replace("period_ms = 200", "period_ms = 60").replace("deadline_ms = 200", "deadline_ms = 60")
        self.config.write_text(fast.replace("max_age_ms = 50", "max_age_ms = 30"))

    def behave(self, **keys) -> None:
        super().behave(**{"values": [{"move": "forward", "speed": 0.3}], **keys})

    @property
    def argv(self) -> list[str]:
        return [str(self.config), "--profile", str(self.profile), "--worker", shlex.join(self.worker)]


@pytest.fixture
def robot(tmp_path) -> Iterator[GuideRobot]:
    with Simulator(axes=AXES) as motors:
        yield GuideRobot(tmp_path, motors)


@pytest.fixture
def line_robot(tmp_path) -> Iterator[GuideRobot]:
    """Its board reads lines of text."""
    with Simulator(axes=AXES, codec="text", options=LINES) as motors:
        yield GuideRobot(tmp_path, motors)


def test_its_configuration_is_right_and_its_pages_name_files_that_exist():
    assemble(GUIDE / "robot.toml")
    page = (GUIDE / "README.md").read_text()
    for name in re.findall(r"`(\w+\.(?:py|toml))`", page):
        assert (GUIDE / name).exists(), name
    for name in PROGRAMS:
        assert f"`{name}.py`" in page


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_explains_itself(name):
    argv = [sys.executable, "-m", f"edgeguard.guide.{name}", "--help"]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert "usage:" in text
    assert "sockets and JSON" in text or "edgeguard.guide" in text


def run_until(program: str, argv: Sequence[str], done: Callable[[Sequence[str]], bool]) -> list[str]:
    """What the program prints until its lines are ``done`` and it is ended by Ctrl-C."""
    command = [sys.executable, "-m", f"edgeguard.guide.{program}", *argv]
    lines: list[str] = []
    give_up = time.monotonic() + 60
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while not done(lines) and time.monotonic() < give_up and (line := process.stdout.readline()):
            lines.append(line)
        process.send_signal(signal.SIGINT)
        lines += process.stdout.readlines()
    assert process.returncode == 0, lines
    assert done(lines), lines
    return lines


def drives(motors: Simulator) -> bool:
    """Whether the ramp has reached what the model asks for: later than the first answer."""
    return any(receipt.axes["linear"] == pytest.approx(0.3) for receipt in motors.report().received)


# Loop mode.


def test_loop_mode_drives_and_ctrl_c_leaves_a_standing_robot(line_robot):
    motors = line_robot.motors
    lines = run_until("loop_mode", [*line_robot.argv, "--port", motors.port], lambda _lines: drives(motors))
    assert any(re.search("armed +model", line) for line in lines)
    wait_for(lambda: motors.report().received[-1].axes == {"linear": 0, "angular": 0}, "it is told to stop")
    wait_for(lambda: motors.where().axes["linear"] == 0, "it stands")
    assert max(receipt.axes["linear"] for receipt in motors.report().received) == pytest.approx(0.3)


def test_a_port_that_is_missing_is_a_message(robot, capsys):
    assert loop_mode.main([*robot.argv, "--port", str(robot.folder / "nothing")]) == 1
    assert "--port" in capsys.readouterr().err


def test_loop_mode_stops_in_front_of_an_obstacle(line_robot):
    motors = line_robot.motors
    assert loop_mode.main([*line_robot.argv, "--port", motors.port, "--seconds", "1.5", "--front-m", "0.3"]) == 0
    assert {receipt.axes["linear"] for receipt in motors.report().received} == {0.0}


def test_the_loops_motors_survive_noise_and_half_lines(line_robot):
    motors = loop_mode.Motors(line_robot.motors.port)
    assert motors.read() == {"linear": None, "angular": None}
    motors.write({"linear": 0.1, "angular": 0.0}, life_ms=80)
    wait_for(lambda: motors.read()["linear"] is not None, "it is measured")
    motors.close()


# Wire mode.


def test_wire_mode_prints_a_decision_per_period_and_the_robot_drives(robot):
    argv = [*robot.argv, "--port", robot.motors.port]
    lines = run_until(
        "wire_mode",
        argv,
        lambda lines: (
            any(re.match(r"armed +model +linear \+0.30 angular \+0.00", line) for line in lines)
            and drives(robot.motors)
        ),
    )
    assert re.match(r"inhibited +safe +linear \+0.00", lines[0])
    assert max(receipt.axes["linear"] for receipt in robot.motors.report().received) == pytest.approx(0.3)


def test_wire_mode_ends_by_itself_after_so_many_periods(robot, capsys):
    assert wire_mode.main([*robot.argv, "--port", robot.motors.port, "--periods", "3"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("program", [loop_mode, wire_mode])
def test_a_missing_profile_is_a_message_and_its_exit_code(program, robot, capsys):
    argv = [str(robot.config), "--profile", str(robot.folder / "none"), "--port", robot.motors.port, "--worker", "true"]
    assert program.main(argv) == 7
    assert "edgeguard calibrate" in capsys.readouterr().err


# The service, fed by another process.


@pytest.fixture
def service(robot) -> Iterator[ServedRobot]:
    with served(robot) as one:
        yield one


class Feeder:
    """The client's process, started from a copy somewhere else: nothing of edgeguard is beside it."""

    def __init__(self, service: ServedRobot) -> None:
        copy = service.robot.folder / "client.py"
        copy.write_text((GUIDE / "socket_client.py").read_text())
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(copy), str(service.sockets / "observe.sock")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def hear(self, wanted: Callable[[dict], bool], *, speak: bool = True) -> dict:
        """The first that is printed of what is ``wanted``; until then the robot says once per period what it knows."""
        give_up, heard = time.monotonic() + 60, []
        while time.monotonic() < give_up:
            if speak:
                self.say(json.dumps({"said": "go ahead", "front_m": 2.0}))
            while select.select([self._process.stdout], [], [], 0.05)[0]:
                heard.append(json.loads(self._process.stdout.readline()))
                if wanted(heard[-1]):
                    return heard[-1]
        raise AssertionError(f"never said: {heard[-5:]}")

    def close(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(timeout=60)
        self._process.stdout.close()
        return code


@pytest.fixture
def feeder(service) -> Iterator[Feeder]:
    """Started before the guard is there."""
    one = Feeder(service)
    yield one
    assert one.close() == 0


def driven(heard: dict) -> bool:
    return heard.get("source") == "model" and heard["axes"]["linear"] > 0


def test_another_process_feeds_the_service_and_hears_its_decisions(service, feeder):
    service.start()
    heard = feeder.hear(driven)
    assert (heard["mode"], heard["causes"]) == ("armed", [])
    feeder.say("no JSON")  # of lines that have queued up only the newest is looked at: nothing may come behind it
    assert "no JSON" in feeder.hear(lambda heard: heard.get("type") == "refused", speak=False)["error"]


def test_the_client_finds_a_guard_that_was_restarted(service, feeder):
    service.start()
    feeder.hear(driven)
    service.process.kill()
    service.wait()
    service.manager.close()
    (service.robot.folder / "notify").unlink()
    service.manager = Manager(service.robot.folder)
    service.start()
    feeder.hear(lambda heard: heard.get("mode") == "inhibited")
    feeder.hear(driven)


# The ROS node.


def scan(ranges: Sequence[float]) -> SimpleNamespace:
    """Nine returns, 0.25 rad apart, the fifth straight ahead."""
    return SimpleNamespace(ranges=ranges, angle_min=-1.0, angle_increment=0.25, range_min=0.1, range_max=8.0)


@pytest.mark.parametrize(
    ("ahead", "nearest"),
    [
        ((2.0, 1.5, 3.0), 1.5),
        ((math.inf, math.nan, 3.0), 3.0),
        ((0.0, 9.0, math.nan), None),  # below range_min, above range_max
    ],
)
def test_the_front_of_a_scan_is_its_nearest_valid_return(ahead, nearest):
    assert ros_node.front_m(scan([0.2, 0.2, 0.2, *ahead, 0.2, 0.2, 0.2])) == nearest


@pytest.mark.parametrize(
    ("sec", "nanosec", "age"), [(5, 0, 1_000.0), (6, 0, 0.0), (6, 1, None), (0, 0, None), (5, 999_000_000, 1.0)]
)
def test_the_age_of_a_stamp_is_that_of_the_clock_that_stamped(sec, nanosec, age):
    assert ros_node.age_ms(SimpleNamespace(sec=sec, nanosec=nanosec), 6_000_000_000) == age


def test_a_simulators_stamp_beside_a_wall_clock_has_no_age():
    assert ros_node.age_ms(SimpleNamespace(sec=12, nanosec=0), 1_796_000_000 * 10**9) is None


def odometry(*, sec: int) -> SimpleNamespace:
    twist = SimpleNamespace(linear=SimpleNamespace(x=0.2), angular=SimpleNamespace(z=-0.1))
    stamp = SimpleNamespace(sec=sec, nanosec=0)
    return SimpleNamespace(header=SimpleNamespace(stamp=stamp), twist=SimpleNamespace(twist=twist))


def test_old_odometry_is_no_reading():
    nothing = {"linear": None, "angular": None}
    assert ros_node.measured(None, 6_000_000_000) == nothing
    assert ros_node.measured(odometry(sec=6), 6_100_000_000) == {"linear": 0.2, "angular": -0.1}
    assert ros_node.measured(odometry(sec=6), 6_300_000_000) == nothing


@pytest.mark.parametrize(("action", "x"), [(Action.MOVE, 0.2), (Action.STOP, 0.2), (Action.TORQUE_OFF, 0.0)])
def test_a_command_becomes_a_twist(fake_ros, action, x):
    from geometry_msgs.msg import TwistStamped

    command = SetPoint(axes={"linear": 0.2, "angular": -0.5}, action=action, life_ms=80)
    message = ros_node.fill(TwistStamped(), command, stamp="now")
    assert (message.header.stamp, message.twist.linear.x) == ("now", x)


@pytest.fixture
def fake_ros(monkeypatch) -> Iterator[None]:
    """A working rclpy, of its own for this test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(Path(__file__).with_name("fake_ros"))
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("rclpy", "ros_messages") or name.partition(".")[0].endswith("_msgs"):
            del sys.modules[name]


class RosRobot:
    """Everything else on the graph: sensors, wheels that do what they are told, and an end of the world."""

    def __init__(self) -> None:
        import rclpy
        from geometry_msgs.msg import TwistStamped
        from nav_msgs.msg import Odometry
        from sensor_msgs.msg import LaserScan
        from std_msgs.msg import String

        rclpy.init(args=[])
        self._rclpy, self._scan, self._odometry, self._string = rclpy, LaserScan, Odometry, String
        self._node = node = rclpy.create_node("robot")
        self._scans = node.create_publisher(LaserScan, "scan", 1)
        self._odom = node.create_publisher(Odometry, "odom", 1)
        self._words = node.create_publisher(String, "said", 1)
        node.create_subscription(TwistStamped, "cmd_vel", self._on_twist, 1)
        node.create_timer(0.06, self._on_timer)
        self.speeds: list[float] = []
        self.times_s: list[float] = []
        self.clocks_agree = True
        self._end = time.monotonic() + 60

    def _stamp(self):
        return self._node.get_clock().now().to_msg()

    def _on_twist(self, message) -> None:
        assert message.header.frame_id == "base_link"
        self.speeds.append(message.twist.linear.x)
        self.times_s.append(time.monotonic())

    def _on_timer(self) -> None:
        self._words.publish(self._string(data="go ahead"))
        odometry, scan = self._odometry(), self._scan()
        odometry.header.stamp = self._stamp()
        odometry.twist.twist.linear.x = self.speeds[-1] if self.speeds else 0.0
        scan.header.stamp = self._stamp() if self.clocks_agree else SimpleNamespace(sec=2**31 - 1, nanosec=0)
        self._odom.publish(odometry)
        self._scans.publish(scan)
        stopped = not self.clocks_agree and self.speeds[-1] == 0  # the scan before this one had a foreign stamp
        if max(self.speeds, default=0.0) == pytest.approx(0.3):
            self.clocks_agree = False
        if stopped or time.monotonic() > self._end:
            self._rclpy.try_shutdown()


def test_the_node_drives_by_a_scan_and_stops_when_its_stamps_are_of_another_clock(fake_ros, robot):
    ros = RosRobot()
    import rclpy

    log = rclpy.context().log
    assert ros_node.main([*robot.argv, "--ros-args", "-r", "cmd_vel:=guarded"]) == 0
    gaps_s = [after_s - before_s for before_s, after_s in pairwise(ros.times_s)]
    steps = [
        abs(after - before)
        for at, (before, after) in enumerate(pairwise(ros.speeds))
        if at and max(gaps_s[max(0, at - 4) : at + 1]) < 0.1  # a base that was left alone for longer stops by itself
    ]
    assert max(ros.speeds) == pytest.approx(0.3), log
    assert ros.speeds[-1] == 0
    assert max(steps, default=0.0) < 0.1  # ramped up and ramped down
    assert any("stamp of the last minute" in line for line in log)
    assert any("armed" in line for line in log)


def test_without_ros_the_node_says_what_is_missing():
    done = subprocess.run(
        [sys.executable, "-m", "edgeguard.guide.ros_node", "robot.toml", "--profile", "none"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "rclpy" not in done.stderr:
        pytest.skip("there is a real rclpy here")
    assert done.returncode == 1
    assert "source a ROS 2 installation" in done.stderr


def test_help_finds_what_is_imported_when_first_used():
    page = pydoc.plain(pydoc.render_doc(edgeguard))
    for name, method in (("Guard", "decide"), ("LoopGuard", "tick"), ("Status", "worker_pid")):
        assert f"class {name}(" in page
        assert method in page
