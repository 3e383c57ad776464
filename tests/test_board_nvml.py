"""NVIDIA's GPUs through something that answers like ``pynvml``: devices, silences, and no driver at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeguard.board import Kind, LevelWatch, find_board
from edgeguard.board.nvml import Nvml
from edgeguard.types import ThermalLevel


class FakeNvmlError(Exception):
    pass


class FakeNvml:
    """One GPU; ``silent`` are the questions that this one does not answer."""

    NVMLError = FakeNvmlError
    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_THRESHOLD_SHUTDOWN = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1

    def __init__(self, *, reasons: int = 1, silent: tuple[str, ...] = ()) -> None:
        self.reasons = reasons
        self.silent = silent
        self.open = 0

    def _say(self, question: str, answer: int) -> int:
        if question in self.silent:
            raise FakeNvmlError("Not Supported")
        return answer

    def nvmlInit(self) -> None:  # noqa: N802 (its names are NVIDIA's)
        self._say("init", 0)
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self._say("count", 1)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetTemperature(self, device: int, sensor: int) -> int:  # noqa: N802
        return self._say("temperature", 71)

    def nvmlDeviceGetTemperatureThreshold(self, device: int, which: int) -> int:  # noqa: N802
        return self._say("threshold", {0: 95, 1: 90}[which])

    def nvmlDeviceGetClockInfo(self, device: int, which: int) -> int:  # noqa: N802
        return self._say("clock", 1410)

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: int) -> int:  # noqa: N802
        return self._say("reasons", self.reasons)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:  # noqa: N802
        return self._say("power", 215_300)

    def nvmlDeviceGetEnforcedPowerLimit(self, device: int) -> int:  # noqa: N802
        return self._say("limit", 350_000)


def test_a_gpu_has_a_temperature_a_clock_a_power_and_a_throttling_state(tmp_path: Path) -> None:
    board = find_board(tmp_path, nvml=Nvml(FakeNvml()))
    reading = board.read(0)
    assert board.names == ("NVIDIA",)
    assert {kind: reading.of(kind) for kind in (Kind.TEMPERATURE, Kind.CLOCK, Kind.POWER, Kind.FLAG)} == {
        Kind.TEMPERATURE: {"nvidia0": 71.0},
        Kind.CLOCK: {"nvidia0": 1410.0},
        Kind.POWER: {"nvidia0": 215.3},
        Kind.FLAG: {"nvidia0": 0.0},
    }
    assert (board.sensors[0].passive_c, board.sensors[0].critical_c) == (90.0, 95.0)


@pytest.mark.parametrize(
    ("reasons", "level"),
    [
        (0x1, ThermalLevel.NOMINAL),  # idle
        (0x2 | 0x10 | 0x100, ThermalLevel.NOMINAL),  # application clocks, sync boost, display clocks
        (0x4, ThermalLevel.THROTTLED),
        (0x8, ThermalLevel.THROTTLED),
        (0x20, ThermalLevel.THROTTLED),
        (0x40, ThermalLevel.THROTTLED),
        (0x80, ThermalLevel.THROTTLED),
    ],
)
def test_which_reasons_are_throttling(tmp_path: Path, reasons: int, level: ThermalLevel) -> None:
    board = find_board(tmp_path, nvml=Nvml(FakeNvml(reasons=reasons)))
    assert LevelWatch().see(board.read(0)).level is level


def test_what_a_gpu_does_not_say_has_the_drivers_reason(tmp_path: Path) -> None:
    nvml = Nvml(FakeNvml(silent=("power", "threshold", "limit")))
    (missing,) = find_board(tmp_path, nvml=nvml).read(0).missing
    assert (missing.sensor.kind, missing.reason) == (Kind.POWER, "Not Supported")
    assert nvml.power_mode() is None


@pytest.mark.parametrize("silent", ["init", "count"])
def test_without_a_driver_there_is_no_gpu(tmp_path: Path, silent: str) -> None:
    nvml = Nvml(FakeNvml(silent=(silent,)))
    assert find_board(tmp_path, nvml=nvml).sensors == ()
    assert nvml.power_mode() is None
    nvml.close()


def test_the_power_limit_is_a_part_of_the_power_mode_and_the_driver_is_let_go() -> None:
    module = FakeNvml()
    nvml = Nvml(module)
    assert nvml.power_mode() == "GPU 350 W"
    nvml.close()
    assert module.open == 0
