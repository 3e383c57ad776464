"""Who the guard's loop listens to and talks to: the seam between the loop and one caller, or a service's sockets.

What was heard is taken up in the very next step of the core. Nothing here may block: an audience that cannot take what
it is told loses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from edgeguard.guard.settings import Settings
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.status import Status
from edgeguard.types import Cause, Observation, OperatorWord


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Since the last time. Of the ``superseded`` observations only an operator's *stop* counts: newest wins.

    ``conditions`` are causes that hold now.
    """

    observation: Observation | None = None
    superseded: tuple[Observation, ...] = ()
    operator: tuple[OperatorWord, ...] = ()
    conditions: tuple[tuple[Cause, str], ...] = ()


class Audience(Protocol):
    """One of them: ``ended`` ends the loop, ``counters`` are part of the status."""

    @property
    def ended(self) -> bool: ...

    @property
    def counters(self) -> Mapping[str, int]: ...

    @property
    def filenos(self) -> list[int]:
        """What to wait for: readable is a reason to ``hear``."""

    def begin(self, settings: Settings, status: Status) -> None:
        """The guard is about to tick."""

    def hear(self, now_ns: int, status: Callable[[], Status]) -> Heard:
        """Take what has arrived, a bounded number of messages; answer who asks for the status."""

    def tell(self, driver: Driver, now_ns: int) -> None:
        """A step of the core has been carried out."""


def heard(observations: list[Observation], operator: list[OperatorWord]) -> Heard:
    """The last of ``observations`` is the newest."""
    newest = observations[-1] if observations else None
    return Heard(observation=newest, superseded=tuple(observations[:-1]), operator=tuple(operator))
