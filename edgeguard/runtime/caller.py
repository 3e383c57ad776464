"""The one caller of a guard in wire mode, over the channel that the guard's process has inherited from it.

It hears every record and event; what its full socket does not take is lost and counted. The guard ends when the caller
says so or is gone: the robot then stops by the life of its last command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edgeguard.channel import Channel
from edgeguard.guard.settings import Settings
from edgeguard.messages import read_observation
from edgeguard.plain import to_plain
from edgeguard.runtime.audience import Heard, heard
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.status import Status
from edgeguard.types import Observation, OperatorWord


class Caller:
    """The other end is ``edgeguard.runtime.handle``."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._told_to_end = False
        self._lost = 0

    @property
    def ended(self) -> bool:
        return self._told_to_end or self._channel.closed

    @property
    def counters(self) -> Mapping[str, int]:
        return {"messages_lost": self._lost}

    @property
    def filenos(self) -> list[int]:
        return [self._channel.fileno()]

    def begin(self, settings: Settings, status: Status) -> None:  # noqa: ARG002 (a service needs them)
        self._channel.send({"type": "started", "status": to_plain(status)})

    def hear(self, now_ns: int, status: Callable[[], Status]) -> Heard:  # noqa: ARG002 (a service needs the time)
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
                self._told_to_end = True
        return heard(observations, operator)

    def tell(self, driver: Driver, now_ns: int) -> None:  # noqa: ARG002 (a service needs the time)
        for record in driver.take_records():
            self._lost += not self._channel.send({"type": "record", "record": to_plain(record)})
        for event in driver.take_events():
            self._lost += not self._channel.send({"type": "event", "event": to_plain(event)})
