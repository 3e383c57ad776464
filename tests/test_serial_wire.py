"""The serial line as a part of the budget: what a frame costs, and whether frames keep up with the tick."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant import PLANT

from edgeguard.errors import ConfigError
from edgeguard.runtime.assembly import assemble
from edgeguard.runtime.serial_wire import command_wire_ns


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
