"""What a simulated motor controller got and why it stopped, with times: a second witness beside the guard's record.

Knows no codec and no motor: values and travel are handed in. Nanoseconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from edgeguard.types.wire import Action, Command

_LENGTH = 20_000
"""Commands kept: more than six minutes at a 20 ms tick."""


class StopCause(str, Enum):
    """Why the motor controller stopped."""

    COMMAND = "command"
    LIFE = "life"  # the command's own life ended, while others could still have come
    LINK_TIMEOUT = "link_timeout"  # no command for the link time-out
    SESSION = "session"  # a new handshake ended the standing command
    ESTOP = "estop"
    FAULT = "fault"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One accepted command, and when it arrived."""

    received_ns: int
    sequence: int
    action: Action
    axes: Mapping[str, float]
    life_ms: int


@dataclass(slots=True, kw_only=True)
class Stop:
    """One stop, from ``values`` to rest; ``rest_ns`` and ``distance`` stay open when a move cut it short."""

    began_ns: int
    cause: StopCause
    values: Mapping[str, float]
    rest_ns: int | None = None
    distance: Mapping[str, float] | None = None


class ControllerLog:
    """The last of what was ``received``, and of the ``stops``."""

    def __init__(self) -> None:
        self.received: deque[Receipt] = deque(maxlen=_LENGTH)
        self.stops: deque[Stop] = deque(maxlen=_LENGTH)
        self._stopping: list[tuple[Stop, Mapping[str, float]]] = []  # with the travel when each began

    @property
    def stopping(self) -> bool:
        """Whether a stop is going on."""
        return bool(self._stopping)

    def note_command(self, command: Command, *, now_ns: int) -> Receipt:
        """What was obeyed."""
        receipt = Receipt(
            received_ns=now_ns,
            sequence=command.sequence,
            action=command.action,
            axes=command.axes,
            life_ms=command.life_ms,
        )
        self.received.append(receipt)
        return receipt

    def note_move(self) -> None:
        """A move cuts short whatever stop was going on."""
        self._stopping.clear()

    def note_stop(
        self, cause: StopCause, *, values: Mapping[str, float], travel: Mapping[str, float], now_ns: int
    ) -> None:
        """A stop begins."""
        stop = Stop(began_ns=now_ns, cause=cause, values=values)
        self.stops.append(stop)
        self._stopping.append((stop, travel))

    def note_rest(self, *, travel: Mapping[str, float], now_ns: int) -> None:
        """Every axis is at rest, which ends the stops that were going on."""
        for stop, before in self._stopping:
            stop.rest_ns = now_ns
            stop.distance = {name: path - before[name] for name, path in travel.items()}
        self._stopping.clear()
