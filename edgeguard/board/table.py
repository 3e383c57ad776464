"""The table of sensors: a row is everything that another board costs, and enrols it in the tests.

Owners are matched by the name that their driver gives them (``type`` of a thermal zone, ``name`` of a hwmon device),
never by their number. Of two rows of a kind that find the same file, the first has it. Sources: the kernel's ABI
documents for thermal, hwmon, cpufreq and devfreq; NVIDIA's and Raspberry Pi's own pages for theirs. What needs a
library instead of a file is in ``edgeguard.board.nvml`` and ``edgeguard.board.portable``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from edgeguard.board.file_row import FileRow
from edgeguard.board.reading import Kind, Sensor
from edgeguard.board.trip_points import THROTTLING_DEVICES


def _pi_now(text: str) -> float:
    """Bits 0 to 3: under-voltage, frequency capped, throttled, soft limit; the firmware slows the cores in each."""
    return float(int(text, 16) & 0xF)


def _pi_since(text: str) -> float:
    """Bits 16 to 19: the same has happened before. How many of them are set rises only when one happens again."""
    return float((int(text, 16) >> 16 & 0xF).bit_count())


_JETSON_GPU = r"\d+\.(gpu|gv11b|ga10b)|gpu-gpc-\d+"
_NOT_THE_SILICON = r"(?i:.*(pmic|iwlwifi|wlan|wifi|modem|batt|charger|nvme|int3400).*)"
"""Radios, batteries, discs; and what says the same whatever it is, such as Jetson's PMIC-Die (100 °C)."""

ROWS = (
    FileRow(
        board="Linux",
        kind=Kind.TEMPERATURE,
        files="sys/class/thermal/thermal_zone*/temp",
        owner="type",
        only=rf"(?!{_NOT_THE_SILICON}).*",
        scale=1e-3,
    ),
    FileRow(  # AMD's processors have no thermal zone
        board="PC",
        kind=Kind.TEMPERATURE,
        files="sys/class/hwmon/hwmon*/temp*_input",
        owner="name",
        only="coretemp|k10temp|zenpower|amdgpu",
        name="{owner} {file}",
        label="temp#_label",
        scale=1e-3,
    ),
    FileRow(
        board="Linux",
        kind=Kind.FLAG,
        files="sys/class/thermal/cooling_device*/cur_state",
        owner="type",
        only=THROTTLING_DEVICES,
    ),
    FileRow(
        board="Intel",
        kind=Kind.COUNTER,
        files="sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count",
        name="{above} {file}",
    ),
    FileRow(  # a long throttling raises the count once only, at its beginning
        board="Intel",
        kind=Kind.COUNTER,
        files="sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_total_time_ms",
        name="{above} {file}",
    ),
    FileRow(
        board="Raspberry Pi",
        kind=Kind.COUNTER,
        files="sys/devices/platform/soc*/*:firmware/get_throttled",
        name="get_throttled: has occurred",
        decode=_pi_since,
    ),
    FileRow(
        board="Raspberry Pi",
        kind=Kind.FLAG,
        files="sys/devices/platform/soc*/*:firmware/get_throttled",
        name="get_throttled: now",
        decode=_pi_now,
    ),
    FileRow(  # while the voltage is too low, the firmware slows the cores
        board="Raspberry Pi",
        kind=Kind.FLAG,
        files="sys/class/hwmon/hwmon*/in0_lcrit_alarm",
        owner="name",
        only="rpi_volt",
        name="under-voltage",
    ),
    FileRow(
        board="Jetson",
        kind=Kind.COUNTER,
        files="sys/class/hwmon/hwmon*/oc*_event_cnt",
        owner="name",
        only="soctherm_oc",
        name="{owner} {file}",
    ),
    FileRow(
        board="Jetson",
        kind=Kind.POWER,
        files="sys/class/hwmon/hwmon*/curr[123]_input",
        owner="name",
        only="ina3221",
        name="{owner} {file}",
        label="in#_label",
        times="in#_input",
        scale=1e-6,  # mA × mV
    ),
    FileRow(
        board="Jetson", kind=Kind.CLOCK, files="sys/class/devfreq/*/cur_freq", only=_JETSON_GPU, name="gpu", scale=1e-6
    ),
    FileRow(
        board="Jetson", kind=Kind.CAP, files="sys/class/devfreq/*/max_freq", only=_JETSON_GPU, name="gpu", scale=1e-6
    ),
    FileRow(
        board="Rockchip", kind=Kind.CLOCK, files="sys/class/devfreq/*/cur_freq", only=r".*\.npu", name="npu", scale=1e-6
    ),
    FileRow(
        board="Rockchip", kind=Kind.CAP, files="sys/class/devfreq/*/max_freq", only=r".*\.npu", name="npu", scale=1e-6
    ),
    FileRow(board="Linux", kind=Kind.CLOCK, files="sys/class/devfreq/*/cur_freq", scale=1e-6),
    FileRow(board="Linux", kind=Kind.CAP, files="sys/class/devfreq/*/max_freq", scale=1e-6),
    FileRow(
        board="Linux", kind=Kind.CLOCK, files="sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq", scale=1e-3
    ),
    FileRow(board="Linux", kind=Kind.CAP, files="sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq", scale=1e-3),
)


def find_files(root: Path, *, kind: Kind | None = None) -> Iterator[tuple[str, Sensor]]:
    """Every row's sensors under ``root``, or those of one kind, each with the row's board."""
    taken: set[tuple[Path, Kind]] = set()
    for row in ROWS:
        if kind not in (None, row.kind):
            continue
        for file, sensor in row.find(root):
            if (file, sensor.kind) not in taken:
                taken.add((file, sensor.kind))
                yield row.board, sensor
