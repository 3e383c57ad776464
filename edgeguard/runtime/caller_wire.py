"""The caller's own wire (loop mode), seen by the driver as a link that is always up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from edgeguard.config.plant_sections import Axis
from edgeguard.errors import ObservationError
from edgeguard.runtime.stamp import plain_value
from edgeguard.types import Echo, LinkState, LinkStatus, MotorFlag, SetPoint
from edgeguard.types.wire import Feedback


class CallerWire:
    """Keeps the set-point for the caller to take.

    What the caller measures is what comes back; an axis that it never names counts as having reached its last
    set-point. What of it is standstill, and that no reading is none, is the guard's rule for everything that measures.
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        self._rest = {axis.name: 0.0 if axis.safe is None else axis.safe for axis in axes}
        self._measured: Mapping[str, float | None] = {}
        self._last: SetPoint | None = None
        self._pending: SetPoint | None = None

    def measure(self, measured: Mapping[str, float | None]) -> None:
        """What each axis does now, in the axis' unit; ``None`` is no reading. Whatever else is no number is refused."""
        readings: dict[str, float | None] = {}
        for name, reading in measured.items():
            if name not in self._rest:
                raise ObservationError(f"measured: {name!r} is no [[axis]]; known: {', '.join(self._rest)}")
            value = plain_value(name, reading)
            if isinstance(value, (str, bool)):
                raise ObservationError(f"measured: {name} = {value!r} is no number; None is no reading")
            readings[name] = None if value is None else float(value)
        self._measured = readings

    def take(self) -> SetPoint | None:
        """The set-point since the last call, if there is a new one."""
        pending, self._pending = self._pending, None
        return pending

    def poll(self, *, now_ns: int) -> LinkStatus:
        last: Mapping[str, float] = {} if self._last is None else self._last.axes
        axes = {name: self._measured.get(name, last.get(name, rest)) for name, rest in self._rest.items()}
        echo = Echo(session=1, sequence=0, flags=MotorFlag(0), life_ms=0, axes=axes, controller_ms=0)
        return LinkStatus(
            state=LinkState.UP,
            feedback=Feedback.MEASURED,
            generation=1,
            session=1,
            echo=echo,
            echo_received_ns=now_ns,
        )

    def transmit(self, set_point: SetPoint, *, now_ns: int) -> int | None:  # noqa: ARG002 (the serial wire needs it)
        self._pending = self._last = set_point
        return 0
