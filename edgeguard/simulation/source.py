"""The robot's own software in a simulation: it captures an observation every period and hands it over when it is due.

A field is what the script says, what an axis measures (the configuration's ``measured``), or a distance that shrinks as
an axis moves on. An observation is as old on its arrival as the script says; its stamp may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edgeguard.clock import NS_PER_S
from edgeguard.config import Config
from edgeguard.simulation.agenda import Agenda
from edgeguard.simulation.wire import SimulatedWire
from edgeguard.types import Observation, Value

STAMPS: Mapping[str, Callable[[int], int]] = {
    "good": lambda now_ns: now_ns,
    "zero": lambda _now_ns: 0,  # nobody has set it
    "future": lambda now_ns: now_ns + NS_PER_S,
}


class ObservationSource:
    """``deliver`` takes each observation on its arrival. The script sets the public attributes."""

    def __init__(
        self,
        config: Config,
        agenda: Agenda,
        *,
        wire: SimulatedWire,
        clock: Callable[[], int],
        period_ns: int,
        shrinks: Mapping[str, str],
        deliver: Callable[[Observation], None],
    ) -> None:
        """``shrinks`` names, for a field that is a distance, the axis that moves towards its end."""
        self.running = True
        self.age_ns = 0
        self.stamp = "good"
        self._agenda = agenda
        self._wire = wire
        self._clock = clock
        self._period_ns = period_ns
        self._shrinks = shrinks
        self._deliver = deliver
        self._measures = {axis.measured: axis.name for axis in config.axes if axis.measured is not None}
        self._fields: dict[str, Value] = {}
        self._origins: dict[str, float] = {}  # where the axis stood when the field was set
        agenda.at(0, self._capture)

    def set(self, fields: Mapping[str, Value]) -> None:
        """From now on the fields say this; ``None`` is no reading."""
        positions = self._wire.controller.positions
        self._fields.update(fields)
        self._origins.update({name: positions[axis] for name, axis in self._shrinks.items() if name in fields})

    def _capture(self) -> None:
        self._agenda.after(self._period_ns, self._capture)
        if not self.running:
            return
        observation = Observation(fields=self._read(), captured_ns=STAMPS[self.stamp](self._clock()))
        self._agenda.after(self.age_ns, lambda: self._deliver(observation))

    def _read(self) -> dict[str, Value]:
        measured = self._wire.measure()
        positions = self._wire.controller.positions
        fields: dict[str, Value] = {field: measured[axis] for field, axis in self._measures.items()}
        fields.update(self._fields)
        for name, origin in self._origins.items():
            value = fields[name]
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                fields[name] = value - (positions[self._shrinks[name]] - origin)
        return fields
