"""Whole guards on motor controllers that speak other protocols: what they do, and what the configuration has to say."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import wait_for
from robot import CONFIG, Robot, drive_until

from edgeguard import Guard
from edgeguard.cli.main import main
from edgeguard.errors import ConfigError
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.runtime.assembly import assemble
from edgeguard.runtime.serial_wire import wire_expiry, wire_guarantee
from edgeguard.types import Action, Mode, Source

LINES = 'codec = "text"\n[link.text]\nformat = "v {linear:.3f}\\n"\n'
CODECS: dict[str, tuple[str, dict[str, Any]]] = {
    "text": ('[link.text]\nformat = "v {linear:.3f}\\n"\n', {"format": "v {linear:.3f}\n"}),
    "text with feedback": (
        '[link.text]\nformat = "v {linear:.3f}\\n"\nfeedback = "is {linear}"\nchecksum = "xor"\n',
        {"format": "v {linear:.3f}\n", "feedback": "is {linear}", "checksum": "xor"},
    ),
    "odrive-ascii": ("[link.odrive-ascii.linear]\nmotor = 0\n", {"linear": {"motor": 0}}),
    "mavlink": ('[link.mavlink]\nforward = "linear"\n', {"forward": "linear"}),
}


def configured(link: str, text: str = CONFIG) -> str:
    """The robot's file with these lines in ``[link]``, which comes last in it."""
    return text + link


@contextmanager
def robot(folder: Path, name: str, *, watchdog: bool = True) -> Iterator[Robot]:
    codec = name.split(maxsplit=1)[0]
    table, options = CODECS[name]
    axes = [MotorAxis(name="linear", accel=4, decel=4)]
    with Simulator(axes=axes, codec=codec, options=options) as motors:
        robot = Robot(folder, motors)
        expiry = "watchdog = true\n" if watchdog else "accept_best_effort = true\n"
        robot.config.write_text(configured(f'codec = "{codec}"\nbaud = 230400\n{expiry}{table}'))
        yield robot


def drive_until_fast(guard: Guard, robot: Robot) -> None:
    """Until the motors do what the model asks for."""
    drive_until(
        guard,
        lambda record: (
            record.decision.source is Source.MODEL
            and robot.motors.report().received[-1].axes["linear"] == pytest.approx(0.4)
        ),
        "the motors are fast",
    )


@pytest.mark.parametrize("name", CODECS)
def test_the_model_drives_and_the_watchdog_stops_it_when_the_guard_is_dead(tmp_path: Path, name: str) -> None:
    with robot(tmp_path, name) as one, one.guarded() as guard:
        drive_until_fast(guard, one)
        assert "watchdog stops it 80 ms after the last command" in guard.status().guarantee
        os.kill(guard.pid, signal.SIGKILL)
        wait_for(lambda: one.motors.where().axes["linear"] == 0, "it stands")


def test_where_nothing_is_measured_standstill_is_assumed_before_the_first_move(tmp_path: Path) -> None:
    # the link time-out, the frame on the line, the controller's latency, and 1.5 times the braking time of 250 ms
    assumed_ms = 461
    with robot(tmp_path, "text") as one, one.guarded() as guard:
        drive_until_fast(guard, one)
        report = one.motors.report()
        said = [event.detail for event in guard.events()]
    assert f"no echo: nobody measures it: standstill is assumed {assumed_ms} ms after the first stop" in said
    moved_ns = next(receipt.received_ns for receipt in report.received if receipt.axes["linear"] != 0)
    assert moved_ns - report.received[0].received_ns > (assumed_ms - 30) * 1_000_000 - report.latest_step_ns


def test_a_life_that_ends_is_ended_by_a_stop_of_the_guards(tmp_path: Path) -> None:
    """No frame carries it: so the guard says 0, and goes on saying it."""
    with robot(tmp_path, "text") as one, one.guarded() as guard:
        drive_until_fast(guard, one)
        wait_for(lambda: one.motors.report().received[-1].axes["linear"] == 0, "without observations it is stopped")
        assert guard.status().mode in (Mode.INTERVENING, Mode.ARMED)


@pytest.mark.parametrize(
    ("link", "says"),
    [
        (LINES, r"link.codec: with text nothing stops the motor controller when this computer dies; .*watchdog = true"),
        ('codec = "text"\nwatchdog = true\n', "link.text.format: missing"),
        (LINES + 'feedback = "is %f"\n', "link.text.feedback: 'is %f' measures no axis; .* such as {linear}"),
        ("[link.text]\nformat = 'v'\n", "link.text: unknown key"),
        ('codec = "telegraph"\n', "'telegraph' is not one of cobs, text, odrive-ascii, mavlink"),
        ('key_file = "link.key"\n', "link.key_file: .*link.key: cannot be read"),
    ],
)
def test_what_a_codec_needs_is_asked_for(tmp_path: Path, link: str, says: str) -> None:
    file = tmp_path / "robot.toml"
    file.write_text(configured(link))
    with pytest.raises(ConfigError, match=says):
        assemble(file)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        (
            "[guard]\n",
            '[guard]\nactions = { emergency = "torque_off" }\n',
            "guard.actions.emergency: .* cannot carry torque_off",
        ),
        (
            "rate_up = 2\n",
            'rate_up = 2\nsafe = "hold"\n',
            "axis 'linear': safe is 'hold', which the codec text cannot carry",
        ),
    ],
)
def test_what_no_frame_can_carry_is_refused(tmp_path: Path, was: str, becomes: str, says: str) -> None:
    file = tmp_path / "robot.toml"
    file.write_text(configured("watchdog = true\n" + LINES, CONFIG.replace(was, becomes)))
    with pytest.raises(ConfigError, match=says):
        assemble(file)


def test_check_prints_the_guarantee_and_no_stop_that_nobody_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "robot.toml"
    text = CONFIG.replace("rate_up = 2\n", "rate_up = 2\nclearance = 2\n")
    decel = "[link.controller_decel]\nlinear = 1.0\n"
    stops = {}
    for expiry in ("watchdog", "accept_best_effort"):
        file.write_text(configured(f"{expiry} = true\n{LINES}{decel}", text))
        assert main(["check", str(file), "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        stops[expiry] = [stop["way"] for stop in said["stops"]]
        assert said["link"]["expiry"] == ("silence" if expiry == "watchdog" else "none")
        assert ("Best effort" in said["link"]["guarantee"]) == (expiry != "watchdog")
    assert stops["watchdog"] == [*stops["accept_best_effort"], "the guard is dead:"]


def test_a_key_is_part_of_the_frames_and_of_no_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "00112233445566778899aabbccddeeff"
    (tmp_path / "link.key").write_text(key)
    (tmp_path / "link.key").chmod(0o600)
    file = tmp_path / "robot.toml"
    file.write_text(configured('key_file = "link.key"\n'))
    assert wire_expiry(assemble(file).config) == "per_frame"
    assert main(["check", str(file)]) == 0
    assert key not in capsys.readouterr().out
    assert "Standstill is what its echo says" in wire_guarantee(assemble(file).config)


def test_actions_are_carried_where_the_format_says_so(tmp_path: Path) -> None:
    file = tmp_path / "robot.toml"
    lines = 'codec = "text"\n[link.text]\nformat = "{action} {linear:.3f} {life_ms}\\n"\n'
    text = CONFIG.replace("[guard]\n", f'[guard]\nactions = {{ emergency = "{Action.TORQUE_OFF.value}" }}\n')
    file.write_text(configured(lines, text))
    assert wire_expiry(assemble(file).config) == "per_frame"
