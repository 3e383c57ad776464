"""The serial line as a part of the budget: what a frame costs, and whether frames keep up with the tick."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest
from patience import wait_for
from plant import PLANT
from robot import CONFIG

from edgeguard.clock import NS_PER_S, SystemClock
from edgeguard.errors import ConfigError
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.runtime.assembly import assemble
from edgeguard.runtime.serial_wire import SerialWire, command_wire_ns
from edgeguard.types import LinkState


def write(folder: Path, *, baud: int, tick_ms: int) -> Path:
    """The plant of three axes: a command has 31 bytes and its echo 35."""
    file = folder / "robot.toml"
    file.write_text(f"[link]\nbaud = {baud}\n[timing]\ntick_ms = {tick_ms}\n{PLANT}")
    return file


def test_a_frames_time_on_the_line_follows_from_the_baud_rate(tmp_path: Path) -> None:
    config = assemble(write(tmp_path, baud=31_000, tick_ms=20)).config
    assert command_wire_ns(config) == 10_000_000


@pytest.mark.parametrize(("baud", "tick_ms"), [(17_500, 20), (9_600, 37), (115_200, 4)])
def test_frames_that_fit_the_tick_are_accepted(tmp_path: Path, baud: int, tick_ms: int) -> None:
    assemble(write(tmp_path, baud=baud, tick_ms=tick_ms))


@pytest.mark.parametrize(
    ("baud", "tick_ms", "says"),
    [
        (
            9_600,
            20,
            "link.baud: 9600 is too slow: an echo of 35 bytes needs 36.5 ms, a tick is 20 ms; "
            "use 19200 baud or more, or a tick_ms of at least 37",
        ),
        (17_499, 20, "use 19200 baud or more, or a tick_ms of at least 21"),
        (115_200, 3, "use 230400 baud or more, or a tick_ms of at least 4"),
    ],
)
def test_frames_that_do_not_fit_the_tick_are_refused_with_the_way_out(
    tmp_path: Path, baud: int, tick_ms: int, says: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        assemble(write(tmp_path, baud=baud, tick_ms=tick_ms))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("timeout_ms", "says"), [(80, ""), (40, "link time-out 40 ms, not the 80 ms of link.timeout_ms")]
)
def test_a_motor_controller_with_another_link_time_out_is_named(tmp_path: Path, timeout_ms: int, says: str) -> None:
    file, clock = tmp_path / "robot.toml", SystemClock()
    file.write_text(CONFIG)
    axes = [MotorAxis(name="linear", accel=4, decel=4)]
    with Simulator(axes=axes, link_timeout_ms=timeout_ms) as motors:
        wire = SerialWire(assemble(file).config, port=motors.port)
        while not wire.poll(now_ns=clock.now_ns()).up:
            clock.sleep_until_ns(clock.now_ns() + 1_000_000)
        assert (motors.port in wire.note, "link time-out" in wire.note) == (True, bool(says))
        assert says in wire.note
        wire.close()


def test_a_port_that_is_unplugged_as_soon_as_it_is_open_is_let_go(tmp_path: Path) -> None:
    """Held open it would keep its name, and the adapter would come back under another one."""
    cable, slave = os.openpty()
    device, port = os.ttyname(slave), tmp_path / "port"
    os.close(slave)
    port.symlink_to(device)
    wire, seconds = SerialWire(assemble(write(tmp_path, baud=115_200, tick_ms=20)).config, port=str(port)), count(1)

    def state() -> LinkState:
        return wire.poll(now_ns=next(seconds) * NS_PER_S).state

    assert state() is LinkState.LOST, "a thread opens it"
    wait_for(lambda: wire.note, "it is open")
    port.unlink()
    wait_for(lambda: state() is LinkState.HANDSHAKING, "it is taken")
    os.close(cable)
    wait_for(lambda: state() is LinkState.LOST, "its end is noticed")
    wait_for(lambda: device not in [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()], "it is closed")
