"""Temperatures as psutil finds them: the fall-back for a machine none of whose files the table knows.

psutil is empty or wrong on several boards, so files come first. It knows this machine only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgeguard.board.file_row import plausible
from edgeguard.board.reading import Kind, Sensor


def find_portable() -> Iterator[Sensor]:
    """Every temperature that psutil has; none where it has none or does not know the system."""
    for chip, entries in _temperatures().items():
        for index, entry in enumerate(entries):
            yield Sensor(
                name=entry.label or chip,
                kind=Kind.TEMPERATURE,
                measure=_Entry(chip=chip, index=index),
                passive_c=entry.high,
                critical_c=entry.critical,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    chip: str
    index: int

    def __call__(self) -> float:
        entries = _temperatures().get(self.chip, [])
        if self.index >= len(entries):
            raise ValueError("has gone")
        return plausible(entries[self.index].current, Kind.TEMPERATURE)


def _temperatures() -> Mapping[str, Sequence[Any]]:
    """By chip: label, current, high, critical."""
    import psutil

    known: Mapping[str, Sequence[Any]] = (
        psutil.sensors_temperatures() if hasattr(psutil, "sensors_temperatures") else {}
    )
    return known
