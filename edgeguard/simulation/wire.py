"""The wire of a simulation: the guard's real link over a line in virtual time, and the motor controller behind it.

A frame takes the time that its bytes need at the configured baud rate, then the motor controller's own latency; the
echo comes back the same way. A cut line loses what is on it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from edgeguard.config import Config
from edgeguard.config.plant_sections import Axis
from edgeguard.errors import LinkError
from edgeguard.link import Link
from edgeguard.link.controller_core import ControllerCore
from edgeguard.link.motor import MotorAxis
from edgeguard.runtime.serial_wire import wire_codec, wire_expiry
from edgeguard.simulation.agenda import Agenda
from edgeguard.types import Grade, LinkStatus, SetPoint
from edgeguard.types.wire import wire_time_ns

MOTOR_HEADROOM = 2.0
"""A motor accelerates so much faster than the guard ever asks of it: what is seen is the guard's ramp."""


class SimulatedWire:
    """The driver's wire, and the hand that pulls the plug. ``on_arrival``: bytes wait to be polled."""

    def __init__(self, config: Config, agenda: Agenda, *, on_arrival: Callable[[], None]) -> None:
        self._config = config
        self._agenda = agenda
        self._on_arrival = on_arrival
        self._line: _Line | None = None
        self._plugged = True
        self._frozen = False
        names = [axis.name for axis in config.axes]
        sessions, nonces = count(1), count(1)
        self.controller = ControllerCore(
            axes=[_motor(axis, config) for axis in config.axes],
            codec=wire_codec(config),
            link_timeout_ms=None if wire_expiry(config) == "none" else config.link.timeout_ns // 1_000_000,
            draw_session=lambda: next(sessions),
            start_ns=0,
        )
        self._link = Link(
            open_port=self._open,
            codec=wire_codec(config),
            axis_count=len(names),
            echo_timeout_ns=config.link.echo_timeout_ns,
            draw_nonce=lambda: next(nonces),
        )

    def poll(self, *, now_ns: int) -> LinkStatus:
        return self._link.poll(now_ns=now_ns)

    def transmit(self, set_point: SetPoint, *, now_ns: int) -> None:
        self._link.send(set_point, now_ns=now_ns)

    def measure(self) -> dict[str, float]:
        """What every axis does at this moment."""
        self.controller.advance(self._agenda.now_ns)
        return self.controller.values

    def cut(self) -> None:
        self._plugged = False
        if self._line is not None:
            self._line.lost = "unplugged"

    def restore(self) -> None:
        self._plugged = True

    def freeze(self, *, frozen: bool) -> None:
        """The motor controller no longer reads its line; what arrives meanwhile is lost."""
        self._frozen = frozen

    def press_estop(self) -> None:
        self.controller.press_estop(now_ns=self._agenda.now_ns)

    def raise_fault(self) -> None:
        self.controller.raise_fault(now_ns=self._agenda.now_ns)

    def _open(self) -> _Line:
        if not self._plugged:
            raise LinkError("simulated port: unplugged")
        self._line = _Line(
            self._agenda,
            baud=self._config.link.baud,
            latency_ns=self._config.link.controller_latency_ns,
            far_end=self._arrive,
            on_arrival=self._on_arrival,
        )
        return self._line

    def _arrive(self, frame: bytes) -> bytes:
        return b"" if self._frozen else self.controller.receive(frame, now_ns=self._agenda.now_ns)


class _Line:
    """A serial port whose bytes take their time; ``edgeguard.link.link.Port`` says what it must do."""

    def __init__(
        self,
        agenda: Agenda,
        *,
        baud: int,
        latency_ns: int,
        far_end: Callable[[bytes], bytes],
        on_arrival: Callable[[], None],
    ) -> None:
        self._agenda = agenda
        self._baud = baud
        self._latency_ns = latency_ns
        self._far_end = far_end
        self._on_arrival = on_arrival
        self._free_ns = 0
        self._inbox = b""
        self.lost: str | None = None
        self.written = 0
        self.superseded = 0

    def fileno(self) -> int:
        raise OSError("a simulated line has no descriptor")

    def offer(self, frame: bytes) -> bool:
        if self.lost is not None:
            return False
        self.written += 1
        self._free_ns = max(self._free_ns, self._agenda.now_ns) + wire_time_ns(len(frame), baud=self._baud)
        self._agenda.at(self._free_ns + self._latency_ns, lambda: self._reach(frame))
        return True

    def flush_some(self) -> bool:
        return True

    def read(self) -> bytes:
        data, self._inbox = self._inbox, b""
        return data

    def close(self) -> None:
        self.lost = self.lost or "closed"

    def _reach(self, frame: bytes) -> None:
        reply = b"" if self.lost is not None else self._far_end(frame)
        if reply:
            self._agenda.after(wire_time_ns(len(reply), baud=self._baud), lambda: self._return(reply))

    def _return(self, reply: bytes) -> None:
        if self.lost is None:
            self._inbox += reply
            self._on_arrival()


def _motor(axis: Axis, config: Config) -> MotorAxis:
    decel = max(axis.rate_down, axis.decel[Grade.EMERGENCY])
    return MotorAxis(
        name=axis.name,
        accel=MOTOR_HEADROOM * axis.rate_up,
        decel=config.link.controller_decel.get(axis.name, MOTOR_HEADROOM * decel),
        holds=axis.safe is None,
    )
