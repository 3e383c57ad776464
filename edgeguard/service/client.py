"""A client of a running service: one message, one reply. For the command line and for whoever feeds observations.

Waits for replies, up to ``PATIENCE_S``; ``GuardGoneError`` when there is no guard or it does not answer.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from edgeguard.channel import Channel, Message
from edgeguard.errors import EdgeguardError, GuardGoneError
from edgeguard.plain import from_plain
from edgeguard.runtime.status import PATIENCE_S, Status
from edgeguard.service.sockets import CONTROL_SOCKET, OBSERVE_SOCKET
from edgeguard.types import CycleRecord, Event, Value


class ServiceClient:
    """A connection to one of the sockets; use it as a context manager."""

    def __init__(self, file: Path) -> None:
        self._file = file
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(PATIENCE_S)
        try:
            sock.connect(str(file))
        except PermissionError as error:
            sock.close()
            raise EdgeguardError(f"{file}: not permitted; it is for the guard's user, root and its group") from error
        except OSError as error:
            sock.close()
            raise GuardGoneError(
                f"no guard listens on {file} ({error.strerror or error}): is the service running, and are these its "
                "--sockets?"
            ) from error
        self._channel = Channel(sock)

    @classmethod
    def observing(cls, sockets: Path) -> ServiceClient:
        """For observations, *stop* and the status."""
        return cls(sockets / OBSERVE_SOCKET)

    @classmethod
    def controlling(cls, sockets: Path) -> ServiceClient:
        """For *re-arm*, *stop* and the status."""
        return cls(sockets / CONTROL_SOCKET)

    @classmethod
    def any(cls, sockets: Path) -> ServiceClient:
        """For *stop* and the status: whichever socket lets us in."""
        try:
            return cls.observing(sockets)
        except GuardGoneError:
            raise
        except EdgeguardError:
            return cls.controlling(sockets)

    def observe(self, fields: Mapping[str, Value], *, age_ms: float = 0.0) -> bool:
        """Hand an observation over and do not wait; ``False`` when the guard does not take it now."""
        return self._channel.send({"type": "observation", "fields": dict(fields), "age_ms": age_ms})

    def stop(self) -> None:
        """The operator's stop; returns when it has been heard."""
        self._ask({"type": "stop"}, reply="done")

    def rearm(self) -> None:
        """The operator's re-arm; returns when it has been heard. Whether it was granted shows in the status."""
        self._ask({"type": "rearm"}, reply="done")

    def status(self) -> Status:
        return from_plain(Status, self._ask({"type": "status"}, reply="status")["status"])

    def records(self) -> Iterator[CycleRecord | Event]:
        """Every decision and every event from now on; ends with ``GuardGoneError`` when the guard does."""
        self._ask({"type": "records"}, reply="done")
        while not self._channel.closed:
            self._channel.wait(PATIENCE_S)
            for message in self._channel.receive():
                if message["type"] == "record":
                    yield from_plain(CycleRecord, message["record"])
                elif message["type"] == "event":
                    yield from_plain(Event, message["event"])
        raise GuardGoneError(f"the guard behind {self._file} has ended")

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> ServiceClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, message: Message, *, reply: str) -> Message:
        """Say it and wait for the reply. An earlier refusal is about something else, unless we were turned away."""
        arrived = self._channel.receive()
        if not self._channel.closed:
            arrived = [] if self._channel.send(message) else self._channel.receive()
        while True:
            for one in arrived:
                if one["type"] == reply:
                    return one
                if one["type"] == "refused":
                    raise EdgeguardError(f"{self._file}: {one.get('error')}")
            if self._channel.closed or not self._channel.wait(PATIENCE_S):
                break
            arrived = self._channel.receive()
        ended = "has ended" if self._channel.closed else f"does not answer within {PATIENCE_S:g} s"
        raise GuardGoneError(f"the guard behind {self._file} {ended}")
