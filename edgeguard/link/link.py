"""The guard's end of the wire: a port, a codec, the handshake, and the latest echo. Time is handed in.

``poll`` once a tick and whenever ``fileno`` is readable; ``send`` when there is something to say. A lost port is
reopened and an unanswered hello repeated, both with a growing pause; every new session raises ``generation`` and
leaves nothing behind of the one before: no byte, no echo, no sequence number. A command is sent in a session or not at
all; it is never kept for later. A motor controller that says it has latched, or that answers in another session, is
asked for a new one. A codec without a handshake has a session of our own for each opening of the port.

Does not know what is safe: that the first frame of a session is a stop is the guard's to see to. Only ``connect``
raises; after that a failure is a state with a ``problem``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from edgeguard.clock import NS_PER_MS, ms_from_ns
from edgeguard.errors import LinkError
from edgeguard.link.carried import Carries
from edgeguard.link.codec import Codec, feedback_of
from edgeguard.link.session import Session
from edgeguard.types.decision import SetPoint
from edgeguard.types.wire import Echo, Hello, LinkState, LinkStatus, MotorFlag, Sent, Welcome, WireMessage

_HELLO_PAUSE_NS = (20 * NS_PER_MS, 200 * NS_PER_MS)
"""First and longest pause between hellos: the answer takes a few ms, a board that its DTR line has reset seconds."""

_REOPEN_PAUSE_NS = (50 * NS_PER_MS, 500 * NS_PER_MS)
"""First and longest pause between attempts to reopen: commands are to flow again within 1 s of the port's return."""

_TRIPPED = MotorFlag.FAULT | MotorFlag.ESTOP

_WINDOW_NS = 20 * NS_PER_MS
_BYTES_PER_WINDOW = 3 * 1024
_BYTES_PER_READ = 256
"""So that a talkative peer cannot hold the tick, however often it wakes us: within a window one read more than so many
bytes is taken in, and a read counts as at least so many. The dearest bytes of any codec take half a microsecond each
on a PC."""


class Port(Protocol):
    """What the link needs of a port; ``edgeguard.link.port.SerialPort`` is one, a simulation has another."""

    lost: str | None
    written: int
    superseded: int

    def fileno(self) -> int: ...

    def offer(self, frame: bytes) -> bool: ...

    def flush_some(self) -> bool: ...

    def read(self) -> bytes: ...

    def close(self) -> None: ...


class Link:
    """One motor controller behind one port. Not thread-safe: it belongs to the guard's loop."""

    def __init__(
        self,
        *,
        open_port: Callable[[], Port | None],
        codec: Codec,
        axis_count: int,
        echo_timeout_ns: int,
        draw_nonce: Callable[[], int] = lambda: int.from_bytes(os.urandom(4), "little"),
    ) -> None:
        """``open_port`` raises ``LinkError`` when there is none; ``None``: it is being opened, and is asked for again.

        Nothing is opened before ``connect`` or ``poll``.
        """
        self._open_port = open_port
        self._codec = codec
        self._feedback = feedback_of(codec)
        self._shakes_hands = Carries.SESSION in codec.carries
        self._axis_count = axis_count
        self._echo_timeout_ns = echo_timeout_ns
        self._draw_nonce = draw_nonce
        self._port: Port | None = None
        self._state = LinkState.LOST
        self._problem: str | None = "not yet opened"
        self._generation = 0
        self._nonce = 0
        self._session: Session | None = None
        self._greeted_ns: int | None = None  # when a session was last asked for
        self._corrupt_before = 0  # of what had come by then
        self._retry_ns = 0  # when to say hello or to reopen again
        self._pause_ns = 0
        self._window_ends_ns = self._n_bytes = 0  # of the bytes of the present window
        self._earlier_written = self._earlier_superseded = 0  # counted by ports that are gone
        self._unsent = self._received = self._foreign = 0

    def fileno(self) -> int | None:
        """The descriptor to wait on for reading; ``None`` while there is no port."""
        return None if self._port is None else self._port.fileno()

    def connect(self, *, now_ns: int) -> None:
        """Open the port, so that the next ``poll`` says hello; ``LinkError`` says why that is impossible."""
        if self._port is None and (port := self._open_port()) is not None:
            self._port = port
            self._codec.reset()
            if self._shakes_hands:
                self._greet(now_ns, problem="the motor controller has not answered yet")
            else:
                nonce = self._draw_nonce()
                welcome = Welcome(nonce=nonce, session=nonce or 1, axis_count=self._axis_count, link_timeout_ms=0)
                self._begin_session(welcome)

    def poll(self, *, now_ns: int) -> LinkStatus:
        """Take in what has arrived, send what is pending, repeat what is due."""
        if self._port is None and now_ns >= self._retry_ns:
            try:
                self.connect(now_ns=now_ns)
            except LinkError as error:
                self._problem = str(error)
                self._pause(now_ns, _REOPEN_PAUSE_NS)
        if self._port is not None:
            self._serve(self._port, now_ns)
        return self.status

    def send(self, set_point: SetPoint, *, now_ns: int) -> Sent | None:
        """Put ``set_point`` on the wire as the session's next command; ``None`` while there is no session."""
        if self._port is None or self._session is None:
            self._unsent += 1
            return None
        command = self._session.command(set_point, now_ns=now_ns)
        frame = self._codec.encode(command)
        return Sent(command=command, frame=frame, written=self._port.offer(frame))

    @property
    def status(self) -> LinkStatus:
        """How things stood at the last ``poll``; the counters include what was sent since."""
        session = self._session
        return LinkStatus(
            state=self._state,
            feedback=self._feedback,
            generation=self._generation,
            session=session.number if session else None,
            echo=session.echo if session else None,
            echo_received_ns=session.as_of_ns if session else None,
            controller_timeout_ms=session.timeout_ms if session else None,
            problem=self._problem,
            written=self._earlier_written + (self._port.written if self._port else 0),
            superseded=self._earlier_superseded + (self._port.superseded if self._port else 0),
            unsent=self._unsent,
            received=self._received,
            corrupt=self._codec.corrupt,
            foreign=self._foreign,
        )

    def close(self) -> None:
        """Let the port go, without waiting for anything."""
        if self._port is not None:
            self._drop_port(self._port, problem="closed")

    def _serve(self, port: Port, now_ns: int) -> None:
        if now_ns >= self._window_ends_ns:
            self._window_ends_ns, self._n_bytes = now_ns + _WINDOW_NS, 0
        while self._n_bytes < _BYTES_PER_WINDOW and (data := port.read()):
            self._n_bytes += max(len(data), _BYTES_PER_READ)
            for message in self._codec.feed(data):
                self._take(message, now_ns)
        port.flush_some()
        if port.lost is not None:
            self._drop_port(port, problem=port.lost)
            self._pause(now_ns, _REOPEN_PAUSE_NS)
        elif self._session is not None and self._session.unanswered_ns(now_ns) > self._echo_timeout_ns:
            self._greet(now_ns, problem=f"no echo for {ms_from_ns(self._echo_timeout_ns):g} ms")
        if self._state is LinkState.HANDSHAKING and now_ns >= self._retry_ns:
            port.offer(self._codec.encode(Hello(nonce=self._nonce, axis_count=self._axis_count)))
            self._pause(now_ns, _HELLO_PAUSE_NS)
            unread = self._codec.corrupt - self._corrupt_before
            if unread > 0:
                self._problem = (
                    f"{unread} pieces of an answer that cannot be read: has the motor controller another link.baud, "
                    "codec, number of axes or key?"
                )

    def _take(self, message: WireMessage, now_ns: int) -> None:
        self._received += 1
        if isinstance(message, Welcome) and message.nonce == self._nonce:
            if self._state is LinkState.HANDSHAKING:
                self._begin_session(message)
        elif isinstance(message, Echo) and self._session is not None and self._session.take(message, now_ns=now_ns):
            if MotorFlag.LATCHED in message.flags and not message.flags & _TRIPPED:
                self._greet(now_ns, problem="the motor controller has stopped by itself and waits for a new session")
        else:
            self._foreign += 1
            if self._session is not None and self._session.usurped:
                self._greet(now_ns, problem="the motor controller answers in another session")

    def _begin_session(self, welcome: Welcome) -> None:
        if welcome.session == 0:
            self._problem = (
                f"the motor controller has {welcome.axis_count} axes, the configuration {self._axis_count}; "
                "make [[axis]] match its firmware"
            )
            return
        self._session = Session(welcome, shared=self._shakes_hands)
        self._generation += 1
        self._state, self._problem = LinkState.UP, None

    def _greet(self, now_ns: int, *, problem: str) -> None:
        """Ask for a new session; the first hello is due at once, or when the longest pause since the last is over."""
        self._session = None
        self._state, self._problem = LinkState.HANDSHAKING, problem
        self._nonce = self._draw_nonce()
        pause_ns = 0 if self._greeted_ns is None else max(0, self._greeted_ns + _HELLO_PAUSE_NS[1] - now_ns)
        self._retry_ns, self._pause_ns = now_ns + pause_ns, 0
        self._greeted_ns, self._corrupt_before = self._retry_ns, self._codec.corrupt

    def _drop_port(self, port: Port, *, problem: str) -> None:
        port.close()
        self._earlier_written += port.written
        self._earlier_superseded += port.superseded
        self._port = None
        self._pause_ns = 0
        self._session = None
        self._state, self._problem = LinkState.LOST, problem

    def _pause(self, now_ns: int, limits_ns: tuple[int, int]) -> None:
        first_ns, longest_ns = limits_ns
        self._pause_ns = min(max(first_ns, 2 * self._pause_ns), longest_ns)
        self._retry_ns = now_ns + self._pause_ns
