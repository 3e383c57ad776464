"""The motor controller's side of the wire, in Python: what ``edgeguard_motor.h`` is in C. Bytes and time handed in.

It takes bytes, answers the handshake, and calls ``apply`` with what is to be done: it obeys newer commands of its
present session only, each for its life and at most the link time-out, and then holds by itself. Milliseconds; no I/O,
no clock. For motors that hang on a CAN bus, on GPIO or behind another process: see ``edgeguard.link.sink``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from edgeguard.link.codec import make_codec
from edgeguard.types.wire import Action, Command, Echo, Hello, MotorFlag, Welcome, is_newer

Apply = Callable[[Action, Mapping[str, float] | None], None]
"""``apply(action, axes)``; the axes are ``None`` unless there is something to follow (move, stop)."""


_TRIPS = MotorFlag.FAULT | MotorFlag.ESTOP


class Receiver:
    """One motor controller. ``measured`` and ``flags`` are its owner's to keep up to date; the next echo says them."""

    def __init__(
        self,
        *,
        axes: Sequence[str],
        apply: Apply,
        draw_session: Callable[[], int],
        link_timeout_ms: int = 80,
        holds: Sequence[str] = (),
        key: bytes | None = None,
    ) -> None:
        """``holds``: the axes that rest where they are, as a gripper; the others rest at 0."""
        self._holds = frozenset(holds)
        self._torque_is_off = False
        self._tripped = MotorFlag(0)
        self._codec = make_codec("cobs", axes=axes, key=key)
        self._axes = tuple(axes)
        self._apply = apply
        self._draw_session = draw_session
        self._link_timeout_ms = link_timeout_ms
        self._nonce: int | None = None
        self._session: int | None = None
        self._sequence: int | None = None
        self._until_ms: float = math.inf  # when the standing command ends; infinity: none stands
        self._expired = MotorFlag(0)
        self.measured: Mapping[str, float | None] = dict.fromkeys(axes)
        self.flags = MotorFlag(0)  # MOVING, FAULT and ESTOP, as they are now

    @property
    def until_ms(self) -> float:
        """When ``tick`` must have been called; infinity while no command stands."""
        return self._until_ms

    def tick(self, now_ms: int) -> None:
        """Let time pass: a life that has ended is a hold, and so is a fault or an e-stop that is new."""
        if now_ms >= self._until_ms:
            self._rest()
            self._expired = MotorFlag.EXPIRED
        tripped = self.flags & _TRIPS
        if tripped & ~self._tripped:
            self._rest()
        self._tripped = tripped

    def receive(self, data: bytes, *, now_ms: int) -> bytes:
        """Take bytes from the wire; what is to be answered."""
        self.tick(now_ms)
        replies = []
        for message in self._codec.feed(data):
            if isinstance(message, Hello):
                replies.append(self._codec.encode(self._greet(message)))
            elif isinstance(message, Command) and self._is_new(message):
                replies.append(self._codec.encode(self._obey(message, now_ms)))
        return b"".join(replies)

    def leave(self) -> None:
        """The guard has hung up: what stands ends now."""
        if self._until_ms < math.inf:
            self._rest()
        self._codec.reset()

    def _greet(self, hello: Hello) -> Welcome:
        fits = hello.axis_count == len(self._axes)
        if fits and (self._session is None or hello.nonce != self._nonce):
            if self._until_ms < math.inf:
                self._rest()
            self._nonce, self._session = hello.nonce, self._draw_session() or 1
            self._sequence, self._expired = None, MotorFlag(0)
        return Welcome(
            nonce=hello.nonce,
            session=self._session if fits and self._session is not None else 0,
            axis_count=len(self._axes),
            link_timeout_ms=self._link_timeout_ms,
        )

    def _is_new(self, command: Command) -> bool:
        ours = self._session is not None and command.session == self._session
        return ours and (self._sequence is None or is_newer(command.sequence, self._sequence))

    def _obey(self, command: Command, now_ms: int) -> Echo:
        life_ms = min(command.life_ms, self._link_timeout_ms)
        self._sequence, self._until_ms = command.sequence, now_ms + life_ms
        action, tripped = command.action, bool(self.flags & _TRIPS)
        if action is not Action.MOVE or not tripped:
            action = Action.HOLD if tripped and action is Action.STOP else action
            self._expired, self._torque_is_off = MotorFlag(0), action is Action.TORQUE_OFF
            self._apply(action, self._targets(action, command.axes))
        return Echo(
            session=command.session,
            sequence=command.sequence,
            flags=self.flags | self._expired,
            life_ms=life_ms,
            axes={name: self.measured.get(name) for name in self._axes},
            controller_ms=now_ms % (1 << 32),
        )

    def _targets(self, action: Action, axes: Mapping[str, float]) -> Mapping[str, float] | None:
        if action is Action.MOVE:
            return axes
        if action is not Action.STOP:
            return None
        return {
            name: goal if name in self._holds else _ease(self.measured.get(name), goal) for name, goal in axes.items()
        }

    def _rest(self) -> None:
        """Its own stop. Nobody has to renew it, and it does not restore a torque that is off."""
        self._until_ms = math.inf
        if not self._torque_is_off:
            self._apply(Action.HOLD, None)


def _ease(now: float | None, goal: float) -> float:
    """As far towards ``goal`` as that leads towards rest. Without a reading that is rest itself."""
    return 0.0 if now is None else min(max(goal, min(now, 0.0)), max(now, 0.0))
