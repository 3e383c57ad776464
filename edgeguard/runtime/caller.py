"""The one caller of a guard in wire mode, over the channel that the guard's process has inherited from it.

It hears every record and event; what its full socket does not take is lost and counted. When the caller says so or is
gone, and at SIGTERM and SIGINT, the guard slows the robot down and ends at standstill.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from types import FrameType

from edgeguard.channel import Channel
from edgeguard.guard.settings import Settings
from edgeguard.messages import read_observation
from edgeguard.plain import to_plain
from edgeguard.runtime.audience import Heard, heard
from edgeguard.runtime.departure import Departure
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.status import Status
from edgeguard.types import Cause, Observation, OperatorWord


class Caller:
    """The other end is ``edgeguard.runtime.handle``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told_by = ""  # who wants it to end
        self._departure: Departure | None = None
        self._settings: Settings | None = None
        self._lost = 0
        self.ended = False

    @property
    def counters(self) -> Mapping[str, int]:
        return {"messages_lost": self._lost}

    @property
    def filenos(self) -> list[int]:
        return [] if self._channel.closed else [self._channel.fileno()]

    def begin(self, settings: Settings, status: Status) -> None:
        self._settings = settings
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_end)
        self._channel.send({"type": "started", "status": to_plain(status)})

    def hear(self, now_ns: int, status: Callable[[], Status]) -> Heard:
        said = self._hear(status)
        if self._channel.closed:
            self._told_by = self._told_by or "the caller is gone"
        if self._departure is None and self._told_by and self._settings is not None:
            self._departure = Departure(self._settings, cause=Cause.SHUTDOWN, detail=self._told_by, now_ns=now_ns)
        return said if self._departure is None else self._departure.hear(said)

    def tell(self, driver: Driver, now_ns: int) -> None:
        for record in driver.take_records():
            self._lost += not self._channel.send({"type": "record", "record": to_plain(record)})
        for event in driver.take_events():
            self._lost += not self._channel.send({"type": "event", "event": to_plain(event)})
        if self._departure is not None:
            self.ended = self._departure.is_over(driver, now_ns)

    def _hear(self, status: Callable[[], Status]) -> Heard:
        observations: list[Observation] = []
        operator: list[OperatorWord] = []
        for message in self._channel.receive():
            kind = message["type"]
            if kind == "observation":
                observation = read_observation(message)
                observations += [] if observation is None else [observation]
            elif kind == "operator" and message.get("word") in list(OperatorWord):
                operator.append(OperatorWord(message["word"]))
            elif kind == "status":
                self._channel.send({"type": "status", "status": to_plain(status())})
            elif kind == "end":
                self._told_by = "the caller says so"
        return heard(observations, operator)

    def _on_end(self, number: int, _frame: FrameType | None) -> None:
        self._told_by = signal.Signals(number).name
