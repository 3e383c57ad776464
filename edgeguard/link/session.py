"""One session with a motor controller: the numbers of its commands, and which echoes answer them. Time is handed in.

A session begins with the controller's ``Welcome`` and is thrown away as a whole, so nothing of it can leak into the
next. With a codec without a handshake it is ours alone, and every echo is taken. Nanoseconds. Pure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from edgeguard.clock import NS_PER_MS
from edgeguard.types.decision import SetPoint
from edgeguard.types.wire import SEQUENCE_MODULUS, Command, Echo, Welcome, is_newer

_KEPT_COMMANDS = SEQUENCE_MODULUS // 4
"""Unanswered ones, with the time when each was sent. No link waits for so many."""

_FOREIGN_ECHOES = 3
"""So many of another session, and none of ours between them, are no leftovers: it has been greeted by somebody else."""


class Session:
    """``shared``: the controller agreed to it, and its echoes say so. ``echo`` is the newest.

    ``as_of_ns``: when the command that it answers was sent. However long the echo was on its way, and however late we
    read it: what it measures was measured since then.
    """

    def __init__(self, welcome: Welcome, *, shared: bool) -> None:
        self.number = welcome.session
        self.timeout_ms = welcome.link_timeout_ms if shared else None
        self.echo: Echo | None = None
        self.as_of_ns: int | None = None
        self._shared = shared
        self._sequence = 0
        self._unanswered: deque[tuple[int, int]] = deque()  # sequence and time of sending, oldest first
        self._foreign_in_a_row = 0

    @property
    def usurped(self) -> bool:
        """Whether the controller answers somebody else by now."""
        return self._foreign_in_a_row >= _FOREIGN_ECHOES

    def unanswered_ns(self, now_ns: int) -> int:
        """For how long a command has been waiting for an echo; 0 where none is waiting, or none is promised."""
        return now_ns - self._unanswered[0][1] if self._unanswered else 0

    def command(self, set_point: SetPoint, *, now_ns: int) -> Command:
        """``set_point`` as the next command."""
        command = Command(
            axes=set_point.axes,
            action=set_point.action,
            session=self.number,
            sequence=self._sequence,
            life_ms=set_point.life_ms,
        )
        if self._shared and len(self._unanswered) < _KEPT_COMMANDS:
            self._unanswered.append((self._sequence, now_ns))
        self._sequence = (self._sequence + 1) % SEQUENCE_MODULUS
        return command

    def take(self, echo: Echo, *, now_ns: int) -> bool:
        """Keep ``echo`` if it belongs here; whether it does."""
        if not self._is_ours(echo):
            self._foreign_in_a_row += echo.session != self.number
            return False
        self.as_of_ns = self._measured_since_ns(echo, now_ns) if self._shared else now_ns
        self.echo = replace(echo, session=self.number)
        self._foreign_in_a_row = 0
        return True

    def _measured_since_ns(self, echo: Echo, now_ns: int) -> int:
        """By the command that it answers; one that it says once more is as much newer as its own clock says."""
        sent_ns = None
        while self._unanswered and not is_newer(self._unanswered[0][0], echo.sequence):
            _, sent_ns = self._unanswered.popleft()
        if sent_ns is not None or self.echo is None or self.as_of_ns is None:
            return now_ns if sent_ns is None else sent_ns
        later_ms = (echo.controller_ms - self.echo.controller_ms) % (1 << 32)
        return min(now_ns, self.as_of_ns + later_ms * NS_PER_MS)

    def _is_ours(self, echo: Echo) -> bool:
        """Of this session, of a command that we have sent, and newer than the last one: nobody plays old ones again."""
        if not self._shared:
            return True
        if echo.session != self.number or is_newer(echo.sequence, (self._sequence - 1) % SEQUENCE_MODULUS):
            return False
        last = self.echo
        if last is None or is_newer(echo.sequence, last.sequence):
            return True
        return echo.sequence == last.sequence and 0 < (echo.controller_ms - last.controller_ms) % (1 << 32) < 1 << 31
