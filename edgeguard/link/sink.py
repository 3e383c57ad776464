"""A motor controller made of a function of yours, for wires that edgeguard does not speak (CAN, GPIO, another process).

The guard's process calls no code but its own: a callable that blocks or raises there would be the guard's death. So the
function lives in a process of yours, which stands at the other end of a pty exactly as a motor controller does, with
session, life, link time-out and echo; the guard opens that pty as its serial port.

    def apply(action, axes):          # move and stop come with axes; hold and torque_off without
        can.send(...)

    with Sink(port="/run/edgeguard/motors", axes=["linear", "angular"], apply=apply) as sink:
        sink.measured = lambda: {"linear": odometry.speed, "angular": odometry.turn}
        sink.serve()                  # until interrupted

``[link] port = "/run/edgeguard/motors"``. ``apply`` is called with a hold when a life or the link ends; it must return
quickly, since a life cannot end while it runs. When this process dies, nothing stops the motors but themselves: they
need a time-out of their own, and the guarantee is theirs. In loop mode none of this is needed: ``tick`` returns the
command.
"""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from edgeguard.clock import NS_PER_MS, Clock, SystemClock
from edgeguard.link.pty_port import PtyPort
from edgeguard.link.receiver import Apply, Receiver
from edgeguard.types.wire import MotorFlag

_IDLE_S = 0.5


class Sink:
    """The process' end of the wire. ``measured`` gives what the axes do, ``flags`` what else an echo says."""

    def __init__(
        self,
        *,
        port: Path | str,
        axes: Sequence[str],
        apply: Apply,
        link_timeout_ms: int = 80,
        holds: Sequence[str] = (),
        key: bytes | None = None,
        clock: Clock | None = None,
    ) -> None:
        """``port`` is the name, a symbolic link, under which the guard finds it; ``holds``: axes that rest anywhere."""
        self._clock = clock or SystemClock()
        self._receiver = Receiver(
            axes=axes,
            apply=apply,
            draw_session=lambda: int.from_bytes(os.urandom(4), "little"),
            link_timeout_ms=link_timeout_ms,
            holds=holds,
            key=key,
        )
        self._pty = PtyPort(path=Path(port))
        self._poll = select.poll()  # select.select knows no descriptor above 1,023, and its owner may have many open
        self._poll.register(self._pty, select.POLLIN)
        self.measured: Callable[[], Mapping[str, float | None]] = dict
        self.flags: Callable[[], MotorFlag] = lambda: MotorFlag(0)
        self.done = False

    def serve(self) -> None:
        """Obey the guard until ``done`` is set (by ``apply``, a signal handler or another thread)."""
        while not self.done:
            self.serve_once()

    def serve_once(self, *, timeout_s: float = _IDLE_S) -> None:
        """Wait for bytes or the end of a life, at most ``timeout_s``, and do what is due."""
        left_ms = self._receiver.until_ms - self._now_ms()
        wait_s = timeout_s if math.isinf(left_ms) else min(timeout_s, max(0.0, left_ms / 1e3))
        ready = self._poll.poll(wait_s * 1e3)
        now_ms = self._now_ms()
        self._receiver.measured, self._receiver.flags = self.measured(), self.flags()
        self._receiver.tick(now_ms)
        if ready:
            reply = self._receiver.receive(self._pty.read(), now_ms=now_ms)
            if reply:
                self._pty.write(reply)

    def close(self) -> None:
        """Take the port away, and hold what still moves."""
        self._receiver.leave()
        self._pty.close()

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _now_ms(self) -> int:
        return self._clock.now_ns() // NS_PER_MS
