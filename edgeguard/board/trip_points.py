"""Where a temperature begins to matter: the kernel's passive and critical trip points of one sensor, in °C.

A passive trip point that only tells somebody (it is bound to a fan or an alert, and to nothing that slows the silicon)
does not count: a Jetson has one at 70 °C for its hot-surface-alert, and slows itself at 99.
"""

from __future__ import annotations

import re
from pathlib import Path

from edgeguard.board.files import read_text

THROTTLING_DEVICES = r"(thermal-)?(cpufreq|devfreq|idle)-.+|Processor|intel_powerclamp|.+-throttle-alert"
"""Cooling devices that slow the silicon, by their type. Fans, radios and displays are not among them."""

_LOWEST_C, _HIGHEST_C = 30.0, 150.0
"""A trip point outside is none: drivers leave 0, -274 or 2^31 where none is set."""


def trip_points(file: Path) -> tuple[float | None, float | None]:
    """(passive, critical) of the sensor whose value ``file`` has: a thermal zone's, or a hwmon device's."""
    if file.name == "temp":
        return _of_zone(file.parent)
    maximum, critical = (file.with_name(file.name.replace("_input", end)) for end in ("_max", "_crit"))
    return _celsius(maximum), _celsius(critical)


def as_trip_point(value_c: float | None) -> float | None:
    """``value_c`` if it can be one: what is taken for a limit of 0 °C would stop the robot for ever."""
    return value_c if value_c is not None and _LOWEST_C <= value_c <= _HIGHEST_C else None


def _of_zone(zone: Path) -> tuple[float | None, float | None]:
    passive, critical = [], []
    for file in zone.glob("trip_point_*_type"):
        kind = read_text(file)
        value_c = _celsius(file.with_name(file.name.replace("_type", "_temp")))
        if value_c is None:
            continue
        if kind == "critical":
            critical.append(value_c)
        elif kind in ("passive", "hot") and _slows(zone, index=file.name.split("_")[2]):
            passive.append(value_c)
    return min(passive, default=None), min(critical, default=None)


def _slows(zone: Path, *, index: str) -> bool:
    """Whether one of the cooling devices bound to this trip point slows the silicon; so it is where none is shown."""
    bound = [link for link in zone.glob("cdev*_trip_point") if read_text(link) == index]
    types = [read_text(link.with_name(link.name.removesuffix("_trip_point")) / "type") or "" for link in bound]
    return not types or any(re.fullmatch(THROTTLING_DEVICES, one) for one in types)


def _celsius(file: Path) -> float | None:
    text = read_text(file)
    if text is None or not re.fullmatch(r"-?\d{1,18}", text):
        return None
    return as_trip_point(int(text) / 1000)
