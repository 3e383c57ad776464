"""NVIDIA's GPUs through NVML: temperature, clock, power, and whether the GPU slows itself.

NVML comes with the driver, its Python module with ``edgeguard[nvidia]``. A machine without either has none of these
sensors, which is no error. What NVML refuses to say at a look is that sensor's reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from edgeguard.board.file_row import plausible
from edgeguard.board.reading import Kind, Sensor
from edgeguard.board.trip_points import as_trip_point

THROTTLING_MASK = 0xEC
"""Of the clocks event reasons: power cap (4), hardware slowdown (8), software and hardware thermal slowdown (0x20,
0x40), power brake (0x80). The others are no throttling: idle, application clocks, sync boost, display clocks."""


def find_nvml() -> Nvml | None:
    """NVML of this machine, where its Python module is installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return Nvml(pynvml)


class Nvml:
    """All devices that ``module`` (``pynvml``, or what answers like it) knows; none where there is no driver."""

    def __init__(self, module: Any) -> None:
        self._nvml = module
        try:
            module.nvmlInit()
            self._handles = [module.nvmlDeviceGetHandleByIndex(index) for index in range(module.nvmlDeviceGetCount())]
        except module.NVMLError:
            self._handles = []

    def find(self) -> Iterator[Sensor]:
        """The sensors of every device."""
        nvml = self._nvml
        for index, handle in enumerate(self._handles):
            slowdown, shutdown = nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, nvml.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN
            questions: dict[Kind, Callable[[Any], float]] = {
                Kind.TEMPERATURE: lambda device: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
                Kind.CLOCK: lambda device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
                Kind.FLAG: lambda device: nvml.nvmlDeviceGetCurrentClocksEventReasons(device) & THROTTLING_MASK,
                Kind.POWER: lambda device: nvml.nvmlDeviceGetPowerUsage(device) / 1000,
            }
            for kind, ask in questions.items():
                heat = kind is Kind.TEMPERATURE
                yield Sensor(
                    name=f"nvidia{index}",
                    kind=kind,
                    measure=_Question(nvml=nvml, device=handle, kind=kind, ask=ask),
                    passive_c=self._threshold_c(handle, slowdown) if heat else None,
                    critical_c=self._threshold_c(handle, shutdown) if heat else None,
                )

    def power_mode(self) -> str | None:
        """The power limits in force, of the devices that have one."""
        limits = []
        for handle in self._handles:
            try:
                limits.append(f"GPU {self._nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000:.0f} W")
            except self._nvml.NVMLError:
                continue
        return ", ".join(limits) or None

    def close(self) -> None:
        """Let the driver go."""
        if self._handles:
            self._nvml.nvmlShutdown()

    def _threshold_c(self, handle: Any, which: int) -> float | None:
        try:
            return as_trip_point(float(self._nvml.nvmlDeviceGetTemperatureThreshold(handle, which)))
        except self._nvml.NVMLError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One thing asked of one device."""

    nvml: Any
    device: Any
    kind: Kind
    ask: Callable[[Any], float]

    def __call__(self) -> float:
        try:
            return plausible(float(self.ask(self.device)), self.kind)
        except self.nvml.NVMLError as error:
            raise OSError(str(error)) from error
