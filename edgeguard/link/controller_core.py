"""The motor controller of the simulator: bytes in, bytes out, motion. Pure: time and the session number are handed in.

It obeys the frames of ``cobs_codec`` as firmware has to: one session at a time, newer sequence numbers only, a life per
command, and a stop of its own, at its own deceleration, when the life or the link time-out ends. Its ``log`` says what
it got and why it stopped. Nanoseconds; motion is integrated in slices of 1 ms, and a life ends at its own nanosecond
however late ``advance`` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.link.carried import Carries
from edgeguard.link.codec import Codec, feedback_of
from edgeguard.link.controller_log import ControllerLog, Receipt, StopCause
from edgeguard.link.motor import Motor, MotorAxis
from edgeguard.types.wire import Action, Command, Echo, Feedback, Hello, MotorFlag, Welcome, is_newer

_SLICE_NS = NS_PER_MS


class ControllerCore:
    """A motor controller without a wire and without a clock. Starts at rest, with no session."""

    def __init__(
        self,
        *,
        axes: Sequence[MotorAxis],
        codec: Codec,
        link_timeout_ms: int | None,
        draw_session: Callable[[], int],
        latch: bool = False,
        start_ns: int,
    ) -> None:
        """``draw_session`` gives the number of a new session, not 0; with ``latch``, an expiry waits for one.

        ``link_timeout_ms`` ``None``: it has no watchdog, and goes on with the last command for ever.
        """
        self._codec = codec
        self._session_wanted = Carries.SESSION in codec.carries
        self._answers = feedback_of(codec) is not Feedback.NONE
        self._link_timeout_ms = link_timeout_ms
        self._draw_session = draw_session
        self._latch = latch
        self._motors = {axis.name: Motor(axis) for axis in axes}
        self._now_ns = start_ns
        self._nonce: int | None = None
        self._session: int | None = None
        self._last: Receipt | None = None  # of this session
        self._standing_until_ns: int | None = None  # when the standing command's life or the link time-out ends
        self._flags = MotorFlag(0)
        self._torque_is_off = False
        self.rest_since_ns: int | None = start_ns
        self.log = ControllerLog()

    def receive(self, data: bytes, *, now_ns: int) -> bytes:
        """Take bytes from the wire, obey what is in them, and return the reply."""
        self.advance(now_ns)
        replies = []
        for message in self._codec.feed(data):
            if isinstance(message, Hello):
                replies.append(self._codec.encode(self._greet(message)))
            elif isinstance(message, Command) and self._accepts(message):
                self._obey(message)
                if self._answers:
                    replies.append(self._codec.encode(self._echo()))
        return b"".join(replies)

    def advance(self, now_ns: int) -> None:
        """Let the time until ``now_ns`` pass."""
        while self._now_ns < now_ns:
            until_ns = min(now_ns, self._now_ns + _SLICE_NS)
            if self._standing_until_ns is not None:
                until_ns = min(until_ns, self._standing_until_ns)
            for motor in self._motors.values():
                motor.advance((until_ns - self._now_ns) / NS_PER_S)
            self._now_ns = until_ns
            self._note_rest()
            if until_ns == self._standing_until_ns:
                self._expire()

    def press_estop(self, *, now_ns: int) -> None:
        """The red button: stop, and do not move before ``clear``."""
        self._trip(MotorFlag.ESTOP, StopCause.ESTOP, now_ns=now_ns)

    def raise_fault(self, *, now_ns: int) -> None:
        """A fault of the drive: stop, and do not move before ``clear``."""
        self._trip(MotorFlag.FAULT, StopCause.FAULT, now_ns=now_ns)

    def clear(self) -> None:
        """Release the button, repair the drive."""
        self._flags &= ~(MotorFlag.ESTOP | MotorFlag.FAULT)

    @property
    def flags(self) -> MotorFlag:
        return self._flags | (MotorFlag.MOVING if self.rest_since_ns is None else MotorFlag(0))

    @property
    def values(self) -> dict[str, float]:
        """What every axis measures now."""
        return {name: motor.value for name, motor in self._motors.items()}

    @property
    def positions(self) -> dict[str, float]:
        return {name: motor.position for name, motor in self._motors.items()}

    @property
    def travel(self) -> dict[str, float]:
        """The path of every axis since the start: it never shrinks, so distances are differences."""
        return {name: motor.travel for name, motor in self._motors.items()}

    def _greet(self, hello: Hello) -> Welcome:
        fits = hello.axis_count == len(self._motors)
        if fits and hello.nonce != self._nonce:
            if self._standing_until_ns is not None:
                self._stop(StopCause.SESSION)
            self._nonce, self._session, self._last = hello.nonce, self._draw_session(), None
            self._flags &= ~(MotorFlag.EXPIRED | MotorFlag.LATCHED)
        return Welcome(
            nonce=hello.nonce,
            session=self._session if fits and self._session is not None else 0,
            axis_count=len(self._motors),
            link_timeout_ms=self._link_timeout_ms or 0,
        )

    def _accepts(self, command: Command) -> bool:
        """Whether this is a command of the present session, and newer than the last one, if there are such things."""
        if not self._session_wanted:
            return True
        return command.session == self._session and (
            self._last is None or is_newer(command.sequence, self._last.sequence)
        )

    def _obey(self, command: Command) -> None:
        earlier, self._last = self._last, self.log.note_command(command, now_ns=self._now_ns)
        timeout_ms = self._link_timeout_ms
        self._standing_until_ns = (
            None if timeout_ms is None else self._now_ns + min(command.life_ms, timeout_ms) * NS_PER_MS
        )
        tripped = bool(self._flags & (MotorFlag.ESTOP | MotorFlag.FAULT))
        if command.action is Action.MOVE:
            if tripped or self._flags & MotorFlag.LATCHED:
                return
            self.log.note_move()
        elif earlier is None or earlier.action is not command.action:
            self._note_stop(StopCause.COMMAND)
        self._flags &= ~MotorFlag.EXPIRED
        self._torque_is_off = command.action is Action.TORQUE_OFF
        for name, motor in self._motors.items():
            if command.action is Action.MOVE:
                motor.follow(command.axes[name])
            elif command.action is Action.TORQUE_OFF:
                motor.coast()
            elif command.action is Action.HOLD or tripped:
                motor.brake()
            else:
                motor.ease(command.axes[name])
        self._note_rest()

    def _echo(self) -> Echo:
        assert self._last is not None
        until_ns = self._now_ns if self._standing_until_ns is None else self._standing_until_ns
        return Echo(
            session=self._session or 0,
            sequence=self._last.sequence,
            flags=self.flags,
            life_ms=(until_ns - self._now_ns) // NS_PER_MS,
            axes=self.values,
            controller_ms=self._now_ns // NS_PER_MS % (1 << 32),
        )

    def _expire(self) -> None:
        """The standing command has ended without another."""
        assert self._last is not None
        silent = self._last.life_ms >= (self._link_timeout_ms or 0)
        self._stop(StopCause.LINK_TIMEOUT if silent else StopCause.LIFE)
        self._flags |= MotorFlag.EXPIRED | (MotorFlag.LATCHED if self._latch else MotorFlag(0))

    def _trip(self, flag: MotorFlag, cause: StopCause, *, now_ns: int) -> None:
        self.advance(now_ns)
        self._flags |= flag
        self._stop(cause)

    def _stop(self, cause: StopCause) -> None:
        """The motor controller's own stop: nobody has to renew it, and it does not restore a torque that is off."""
        self._standing_until_ns = None
        self._note_stop(cause)
        if not self._torque_is_off:
            for motor in self._motors.values():
                motor.brake()
        self._note_rest()

    def _note_stop(self, cause: StopCause) -> None:
        self.log.note_stop(cause, values=self.values, travel=self.travel, now_ns=self._now_ns)

    def _note_rest(self) -> None:
        if any(motor.moving for motor in self._motors.values()):
            self.rest_since_ns = None
            return
        if self.rest_since_ns is None:
            self.rest_since_ns = self._now_ns
        if self.log.stopping:
            self.log.note_rest(travel=self.travel, now_ns=self._now_ns)
