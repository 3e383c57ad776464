"""psutil's temperatures, where no file has one: read again at each look, and gone without an error."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from edgeguard.board import Board, Kind, LevelWatch
from edgeguard.board.portable import find_portable, read_temperatures
from edgeguard.types import ThermalLevel


class Entry(NamedTuple):
    """As psutil's."""

    label: str
    current: float
    high: float | None
    critical: float | None


def test_a_chip_is_read_again_at_each_look_until_it_has_gone() -> None:
    chips = {"soc": [Entry("", 61.0, 80.0, 95.0)], "gpu": [Entry("junction", 55.0, None, None)]}
    board = Board(names=("psutil",), sensors=tuple(find_portable(lambda: chips)))
    watch = LevelWatch()
    reading = board.read(0)
    assert reading.of(Kind.TEMPERATURE) == {"soc": 61.0, "junction": 55.0}
    assert watch.see(reading).level is ThermalLevel.NOMINAL
    chips["soc"] = [Entry("", 95.5, 80.0, 95.0)]
    state = watch.see(board.read(1))
    assert (state.level, state.critical) == (ThermalLevel.HOT, True)
    chips.clear()
    assert [one.reason for one in board.read(2).missing] == ["has gone", "has gone"]


@pytest.mark.parametrize("nothing", [0.0, -273.0, 65_261.85])
def test_a_drivers_way_to_say_that_it_has_no_limit_is_none(nothing: float) -> None:
    board = Board(
        names=("psutil",), sensors=tuple(find_portable(lambda: {"disc": [Entry("", 41.0, nothing, nothing)]}))
    )
    state = LevelWatch().see(board.read(0))
    assert (state.level, state.critical) == (ThermalLevel.NOMINAL, False)


def test_this_machines_can_be_asked_for() -> None:
    assert isinstance(read_temperatures(), dict)
