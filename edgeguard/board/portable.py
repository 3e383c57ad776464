"""Temperatures as psutil finds them: the fall-back for a machine none of whose files the table knows.

psutil is empty or wrong on several boards, so files come first. It knows this machine only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from edgeguard.board.file_row import plausible
from edgeguard.board.reading import Kind, Sensor
from edgeguard.board.trip_points import as_trip_point

Temperatures: TypeAlias = Callable[[], Mapping[str, Sequence[Any]]]
"""By chip, entries of label, current, high and critical."""


def read_temperatures() -> Mapping[str, Sequence[Any]]:
    """psutil's; none where it does not know how."""
    import psutil

    read: Temperatures = getattr(psutil, "sensors_temperatures", dict)
    return read()


def find_portable(read: Temperatures = read_temperatures) -> Iterator[Sensor]:
    """Every temperature that ``read`` has now; each look reads all of them again."""
    for chip, entries in read().items():
        for index, entry in enumerate(entries):
            yield Sensor(
                name=entry.label or chip,
                kind=Kind.TEMPERATURE,
                measure=_Entry(read=read, chip=chip, index=index),
                passive_c=as_trip_point(entry.high),
                critical_c=as_trip_point(entry.critical),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    read: Temperatures
    chip: str
    index: int

    def __call__(self) -> float:
        entries = self.read().get(self.chip, ())
        if self.index >= len(entries):
            raise ValueError("has gone")
        return plausible(entries[self.index].current, Kind.TEMPERATURE)
