"""The simulator as a process: it obeys over a real pty, outlives the guard, and stops the robot when the guard dies."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from patience import wait_for

from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.errors import LinkError
from edgeguard.link import Link, SerialPort, make_codec
from edgeguard.link.controller_log import StopCause
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.types import Action, SetPoint
from edgeguard.types.wire import LinkState, LinkStatus, MotorFlag

AXES = [MotorAxis(name="linear", accel=2.0, decel=1.0), MotorAxis(name="angular", accel=4.0, decel=4.0)]
PATIENCE_S = 60.0

GUARD = """
import sys
from functools import partial
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.link import Link, SerialPort, make_codec
from edgeguard.types import Action, SetPoint

clock = SystemClock()
link = Link(open_port=partial(SerialPort, path=sys.argv[1], baud=115_200),
            codec=make_codec("cobs", axes=["linear", "angular"]), axis_count=2, echo_timeout_ns=NS_PER_S)
while True:
    link.poll(now_ns=clock.now_ns())
    link.send(SetPoint(axes={"linear": 0.5, "angular": 0.0}, action=Action.MOVE, life_ms=80), now_ns=clock.now_ns())
    clock.sleep_until_ns(clock.now_ns() + 20 * NS_PER_MS)
"""


class Driver:
    """A guard's loop reduced to the wire: one command every 20 ms."""

    def __init__(self, port: str, *, life_ms: int = 80) -> None:
        self._clock = SystemClock()
        self._life_ms = life_ms
        self.link = Link(
            open_port=partial(SerialPort, path=port, baud=115_200),
            codec=make_codec("cobs", axes=[axis.name for axis in AXES]),
            axis_count=len(AXES),
            echo_timeout_ns=2 * NS_PER_S,
        )

    def until(
        self,
        condition: Callable[[LinkStatus], bool],
        *,
        linear: float = 0.5,
        action: Action = Action.MOVE,
    ) -> LinkStatus:
        """Send until ``condition`` holds for the link's status."""
        set_point = SetPoint(axes={"linear": linear, "angular": 0.0}, action=action, life_ms=self._life_ms)
        end_ns = self._clock.now_ns() + int(PATIENCE_S * NS_PER_S)
        while self._clock.now_ns() < end_ns:
            status = self.link.poll(now_ns=self._clock.now_ns())
            if condition(status):
                return status
            self.link.send(set_point, now_ns=self._clock.now_ns())
            self._clock.sleep_until_ns(self._clock.now_ns() + 20 * NS_PER_MS)
        raise AssertionError(f"never so: {self.link.status}")


def at_speed(status: LinkStatus) -> bool:
    return status.echo is not None and status.echo.axes["linear"] == 0.5


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(axes=AXES) as simulator:
        yield simulator


@pytest.fixture
def driver(simulator: Simulator) -> Iterator[Driver]:
    driver = Driver(simulator.port)
    yield driver
    driver.link.close()


@contextmanager
def guard_process(port: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", GUARD, port]) as process:
        try:
            yield process
        finally:
            process.kill()


def await_rest(simulator: Simulator) -> int:
    """When it came to rest."""
    return wait_for(lambda: simulator.where().rest_since_ns, "it comes to rest")


def test_it_obeys_and_reports_what_it_got() -> None:
    with Simulator(axes=AXES, link_timeout_ms=60_000) as simulator:  # a driver that pauses is not what is tested
        driver = Driver(simulator.port, life_ms=60_000)
        status = driver.until(at_speed)
        assert status.controller_timeout_ms == 60_000
        driver.until(
            lambda one: one.echo is not None and one.echo.flags == MotorFlag(0), linear=0.0, action=Action.STOP
        )
        report = simulator.report()
        assert simulator.report(since_ns=report.received[-1].received_ns).received == report.received[-1:]
        driver.link.close()
    assert [receipt.sequence for receipt in report.received] == list(range(len(report.received)))
    assert {receipt.action for receipt in report.received} == {Action.MOVE, Action.STOP}
    stop = report.stops[-1]
    assert stop.cause is StopCause.COMMAND
    assert stop.distance is not None
    assert stop.distance["linear"] == pytest.approx(0.5**2 / 2, rel=0.05)
    assert report.latest_step_ns >= 0


def test_it_streams_its_motion_and_drops_it_when_nobody_reads(simulator: Simulator, driver: Driver) -> None:
    motions = simulator.motions()[:0]

    def moved(status: LinkStatus) -> bool:
        motions.extend(simulator.motions())
        return at_speed(status)

    driver.until(moved)
    times_ns = [motion.t_ns for motion in motions]
    assert times_ns == sorted(times_ns)
    assert times_ns[-1] - times_ns[0] > 100 * NS_PER_MS
    speeds = [motion.axes["linear"] for motion in motions]
    assert speeds[0] == 0
    assert 0 < speeds[-1] <= 0.5
    assert select.select([simulator], [], [], PATIENCE_S)[0]


def test_when_the_guard_is_killed_it_stops_within_the_link_timeout(simulator: Simulator) -> None:
    with guard_process(simulator.port) as guard:
        while simulator.where().axes["linear"] < 0.5:
            time.sleep(0.02)
        guard.send_signal(signal.SIGKILL)
        guard.wait()
        rest_ns = await_rest(simulator)
    report = simulator.report()
    stop = report.stops[-1]
    assert stop.cause is StopCause.LINK_TIMEOUT
    assert stop.began_ns == report.received[-1].received_ns + 80 * NS_PER_MS
    assert rest_ns == stop.rest_ns
    speed = stop.values["linear"]  # 0.5, unless the guard was kept waiting just before its death
    assert rest_ns - stop.began_ns == pytest.approx(speed * NS_PER_S, abs=2 * NS_PER_MS)
    assert stop.distance is not None
    assert stop.distance["linear"] == pytest.approx(speed**2 / 2, rel=0.02)


def test_a_frozen_controller_never_blocks_us_and_obeys_nothing_old_when_it_wakes(
    simulator: Simulator, driver: Driver
) -> None:
    generation = driver.until(at_speed).generation
    frozen = simulator.freeze()
    driver.until(lambda status: status.state is LinkState.HANDSHAKING)
    stopped = await_rest(simulator)
    assert frozen.t_ns < stopped
    travel = simulator.where().travel["linear"]
    thawed = simulator.thaw()
    assert driver.until(lambda status: status.up, linear=0.0, action=Action.STOP).generation == generation + 1
    time.sleep(0.1)
    assert simulator.where().travel["linear"] - travel < 0.5 * 0.002, "an old command moved it"
    assert simulator.report(since_ns=thawed.t_ns).stops[0].cause is StopCause.SESSION


def test_after_the_port_was_cut_the_link_returns_with_a_new_session(simulator: Simulator, driver: Driver) -> None:
    before = driver.until(at_speed)
    simulator.cut()
    lost = driver.until(lambda status: status.state is LinkState.LOST)
    assert lost.problem
    await_rest(simulator)
    assert simulator.report().stops[-1].cause is StopCause.LINK_TIMEOUT
    restored = simulator.restore()
    after = driver.until(at_speed)
    assert after.generation == before.generation + 1
    assert after.session != before.session
    first = simulator.report(since_ns=restored.t_ns).received[0]
    assert first.sequence == 0


@pytest.mark.parametrize(("press", "flag"), [(Simulator.estop, MotorFlag.ESTOP), (Simulator.fault, MotorFlag.FAULT)])
def test_an_estop_or_a_fault_reaches_the_echo_until_it_is_cleared(
    simulator: Simulator, driver: Driver, press: Callable[[Simulator], object], flag: MotorFlag
) -> None:
    driver.until(at_speed)
    press(simulator)
    driver.until(lambda status: status.echo is not None and status.echo.flags & ~MotorFlag.EXPIRED == flag)
    simulator.clear()
    driver.until(at_speed)


def test_a_holding_axis_and_a_latch_are_passed_on() -> None:
    axes = [AXES[0], MotorAxis(name="angular", accel=1.0, decel=1.0, holds=True)]
    with Simulator(axes=axes, latch=True) as simulator:
        driver = Driver(simulator.port)
        driver.until(at_speed)
        simulator.freeze()
        await_rest(simulator)
        assert simulator.where().flags == MotorFlag.EXPIRED | MotorFlag.LATCHED
        driver.link.close()


def test_a_simulator_that_cannot_start_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LinkError, match=r"simulator is gone \(exit status 2\)"):
        Simulator(axes=[])
    assert "--axis" in capfd.readouterr().err


def test_alone_it_runs_until_it_is_told_to_end(tmp_path: Path) -> None:
    path = tmp_path / "port"
    command = [sys.executable, "-m", "edgeguard.link.controller", "--port", str(path), "--axis", "linear", "1", "1"]
    with subprocess.Popen(command) as process:
        wait_for(path.exists, "the port is there")
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert not path.exists()


def test_it_ends_with_its_owner(tmp_path: Path) -> None:
    owner = """
import time
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator

simulator = Simulator(axes=[MotorAxis(name="linear", accel=1.0, decel=1.0)])
print(simulator.port, flush=True)
time.sleep(600)
"""
    command, environment = [sys.executable, "-c", owner], {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        wait_for(path.exists, "the port is there")
        process.kill()
    wait_for(lambda: not path.exists(), "the port is gone")


def test_the_guards_end_is_light_to_import() -> None:
    code = """
import sys
import edgeguard.config, edgeguard.types
before = set(sys.modules)
import edgeguard.link
heavy = {"numpy", "onnxruntime", "asyncio", "subprocess", "tempfile", "argparse", "edgeguard.link.controller"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
print(len(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert int(done.stdout) < 50  # about 30, in some 10 ms
