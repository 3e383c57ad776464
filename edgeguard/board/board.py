"""A board as its sensors show it: found once, read again and again.

``find_board`` looks which rows of the table apply; ``Board.read`` gives a value or a reason for each of their sensors,
and never raises. Reading a sensor can block (an I²C device may be behind it): read where nobody waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from edgeguard.board.nvml import Nvml, find_nvml
from edgeguard.board.portable import find_portable
from edgeguard.board.reading import Kind, Reading, Sensor, Value
from edgeguard.board.table import find_files

_THIS_MACHINE = Path("/")


class Board:
    """``names`` are the boards of the rows that apply, ``sensors`` what they have found."""

    def __init__(self, *, names: tuple[str, ...], sensors: tuple[Sensor, ...]) -> None:
        self.names = names
        self.sensors = sensors
        self._counted: dict[Sensor, float] = {}

    def read(self, now_ns: int) -> Reading:
        """Every sensor once. A throttle counter's first look has no value: there is nothing to compare it with."""
        return Reading(read_ns=now_ns, values=tuple(self._read(sensor) for sensor in self.sensors))

    def _read(self, sensor: Sensor) -> Value:
        try:
            value = sensor.measure()
        except OSError as error:
            return Value(sensor=sensor, value=None, reason=error.strerror or str(error))
        except ValueError as error:
            return Value(sensor=sensor, value=None, reason=str(error))
        return self._since(sensor, value) if sensor.kind is Kind.COUNTER else Value(sensor=sensor, value=value)

    def _since(self, sensor: Sensor, count: float) -> Value:
        """What has been counted since the last look that succeeded."""
        before = self._counted.get(sensor)
        self._counted[sensor] = count
        if before is None:
            return Value(sensor=sensor, value=None, reason="first look")
        if count < before:
            return Value(sensor=sensor, value=None, reason=f"went back from {before:g} to {count:g}")
        return Value(sensor=sensor, value=count - before)


def find_board(root: Path = _THIS_MACHINE, *, nvml: Nvml | None = None) -> Board:
    """The board under ``root``. NVML and psutil know this machine only: another root has no ``nvml`` but the given."""
    here = root == _THIS_MACHINE
    if nvml is None and here:
        nvml = find_nvml()
    found = list(find_files(root))
    if nvml is not None:
        found += [("NVIDIA", sensor) for sensor in nvml.find()]
    if here and not any(sensor.kind is Kind.TEMPERATURE for _, sensor in found):
        found += [("psutil", sensor) for sensor in find_portable()]
    return Board(
        names=tuple(dict.fromkeys(name for name, _ in found)),
        sensors=_told_apart(sensor for _, sensor in found),
    )


def _told_apart(sensors: Iterable[Sensor]) -> tuple[Sensor, ...]:
    """A second sensor of the same kind and name is called "… 2"."""
    seen: Counter[tuple[Kind, str]] = Counter()
    named = []
    for sensor in sensors:
        seen[sensor.kind, sensor.name] += 1
        count = seen[sensor.kind, sensor.name]
        named.append(sensor if count == 1 else replace(sensor, name=f"{sensor.name} {count}"))
    return tuple(named)
