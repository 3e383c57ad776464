"""The two sockets of a service, and what may be said on each: JSON messages as ``edgeguard run --schema`` prints them.

==============  =========================================================  =============================================
socket          takes                                                      who may connect, besides the same user, root
==============  =========================================================  =============================================
observe.sock    ``observation``, ``stop``, ``status``, ``records``          the group of ``edgeguard run --group``
control.sock    ``stop``, ``rearm``, ``status``, ``records``                the group of ``edgeguard run --operators``
==============  =========================================================  =============================================

Who asks for ``records`` hears every decision and every event from then on; what it does not read in time is lost to it.
So *stop* takes effect for whoever may connect at all, and *re-arm* is a permission of its own. Of the observations that
have arrived together the newest wins. An ``age_ms`` counts from the moment of hearing: who shares our monotonic clock
does better with ``captured_ns``. A missing or impossible one becomes the core's *bad time stamp*, never "now".
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from edgeguard.channel import Message, encode
from edgeguard.clock import ns_from_ms
from edgeguard.messages import read_observation
from edgeguard.plain import to_plain
from edgeguard.runtime.audience import Heard, heard
from edgeguard.runtime.status import Status
from edgeguard.service.entrance import WINDOW_NS, Client, Entrance
from edgeguard.types import CycleRecord, Event, Observation, OperatorWord

OBSERVE_SOCKET = "observe.sock"
CONTROL_SOCKET = "control.sock"

MESSAGE_SCHEMA = Path(__file__).with_name("messages.schema.json")

NO_STAMP_NS = 0
"""No monotonic clock shows it: the core takes it for what it is."""

_LONGEST_AGE_MS = 3_600_000


def default_sockets() -> Path:
    """``$RUNTIME_DIRECTORY`` (systemd), else ``$XDG_RUNTIME_DIR/edgeguard``, else ``/run/edgeguard``."""
    given = os.environ.get("RUNTIME_DIRECTORY")
    if given:
        return Path(given.split(":")[0])
    home = os.environ.get("XDG_RUNTIME_DIR")
    return Path(home) / "edgeguard" if home else Path("/run/edgeguard")


class Sockets:
    """Both entrances. ``hear`` takes a bounded number of messages per window and client."""

    def __init__(self, directory: Path, *, group: int | None, operators: int | None) -> None:
        self._window_ends_ns = 0
        self._unusable = 0
        self._unheard = 0
        self._observe = Entrance(directory / OBSERVE_SOCKET, group=group)
        try:
            self._control = Entrance(directory / CONTROL_SOCKET, group=operators)
        except BaseException:  # whatever ends this, the first socket must not outlive it; it goes on its way
            self._observe.close()
            raise

    @property
    def filenos(self) -> list[int]:
        return [*self._observe.filenos, *self._control.filenos]

    @property
    def counters(self) -> Mapping[str, int]:
        both = (self._observe, self._control)
        return {
            "connections_refused": sum(entrance.refused for entrance in both),
            "clients_cut_off": sum(entrance.cut_off for entrance in both),
            "records_unheard": self._unheard,
            "messages_unusable": self._unusable + sum(entrance.garbage for entrance in both),
        }

    def hear(self, now_ns: int, status: Callable[[], Status]) -> Heard:
        """``status`` is asked for once, however many ask for it: it takes longer than any other reply."""
        if now_ns >= self._window_ends_ns:
            self._window_ends_ns = now_ns + WINDOW_NS
            self._observe.begin_window()
            self._control.begin_window()
        observations: list[Observation] = []
        operator: list[OperatorWord] = []
        standing = functools.cache(lambda: encode({"type": "status", "status": to_plain(status())}))
        for client, message in self._observe.hear():
            if message["type"] == "observation":
                self._observation(client, message, observations, now_ns)
            else:
                self._word(client, message, operator, among=(OperatorWord.STOP,), standing=standing)
        for client, message in self._control.hear():
            self._word(client, message, operator, among=tuple(OperatorWord), standing=standing)
        return heard(observations, operator)

    def publish(self, records: Iterable[CycleRecord], events: Iterable[Event]) -> None:
        """Tell everybody who has asked for records."""
        listeners = [*self._observe.listeners, *self._control.listeners]
        if listeners:
            packets = [encode({"type": "event", "event": to_plain(one)}) for one in events]
            packets += [encode({"type": "record", "record": to_plain(one)}) for one in records]
            for listener in listeners:
                self._unheard += sum(not listener.channel.send_packet(packet) for packet in packets)

    def close(self) -> None:
        self._observe.close()
        self._control.close()

    def _observation(self, client: Client, message: Message, observations: list[Observation], now_ns: int) -> None:
        observation = received_observation(message, now_ns=now_ns)
        if observation is None:
            self._unusable += 1
            client.refuse("no observation: fields is an object of texts, numbers, true, false and null; see the schema")
        else:
            observations.append(observation)

    def _word(
        self,
        client: Client,
        message: Message,
        operator: list[OperatorWord],
        *,
        among: tuple[OperatorWord, ...],
        standing: Callable[[], bytes],
    ) -> None:
        kind = message["type"]
        if kind == "status":
            client.channel.send_packet(standing())
        elif kind == "records":
            client.listens = True
            client.confirm()
        elif kind in [word.value for word in among]:
            operator.append(OperatorWord(kind))
            client.confirm()
        else:
            self._unusable += 1
            client.refuse(f"{kind[:40]!r} is not taken on this socket")


def received_observation(message: Message, *, now_ns: int) -> Observation | None:
    """The observation in ``message``, ``None`` for another shape. It is dated by ``captured_ns`` or by ``age_ms``."""
    age_ms = message.get("age_ms")
    if age_ms is None:
        return read_observation({"captured_ns": NO_STAMP_NS, **message})
    observation = read_observation({**message, "captured_ns": NO_STAMP_NS})
    if observation is None or "captured_ns" in message or isinstance(age_ms, (bool, str, list, dict)):
        return observation
    if not 0 <= age_ms < _LONGEST_AGE_MS:  # written so that NaN fails too
        return observation
    return dataclasses.replace(observation, captured_ns=now_ns - ns_from_ms(float(age_ms)))
