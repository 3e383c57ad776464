"""The guard's own process: owns tick, deadline and wire, and waits for nobody.

Started by ``edgeguard.runtime.handle`` as ``python -m edgeguard.runtime.process FD OPTIONS``, or as a service by
``edgeguard.service.service``. It imports neither numpy nor onnxruntime and prints nothing. One loop: wait for the next
timer or a message, take what has arrived, one step of the core, carry it out. It ends when its audience does.
"""

from __future__ import annotations

import dataclasses
import json
import select
import sys
from dataclasses import dataclass

from edgeguard.channel import PEER_LIMIT_BYTES, Channel
from edgeguard.clock import NS_PER_S, Clock, SystemClock
from edgeguard.errors import EdgeguardError
from edgeguard.guard.sensing import stop_word
from edgeguard.guard.settings import Settings
from edgeguard.messages import failure_message
from edgeguard.plain import from_plain
from edgeguard.runtime.audience import Audience, Heard
from edgeguard.runtime.caller import Caller
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.parts import Parts
from edgeguard.runtime.realtime import measure_reserve_ns, request_real_time
from edgeguard.runtime.serial_wire import SerialWire, command_wire_ns
from edgeguard.runtime.status import Status, status_of
from edgeguard.types import OperatorWord

WIRE_WAKES_PER_TICK = 4
"""An echo may come in so many pieces. What a motor controller says beyond them is heard with the tick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the guard is told at the start. Paths are absolute. ``await_port``: a port that is not there may come."""

    config: str
    profile: str
    worker: tuple[str, ...]
    state_directory: str | None = None
    port: str | None = None
    await_port: bool = False


class GuardProcess:
    """Everything that the process owns."""

    def __init__(self, *, options: Options, audience: Audience, clock: Clock) -> None:
        self._clock = clock
        self._audience = audience
        self._parts = parts = Parts(
            config=options.config,
            profile=options.profile,
            state_directory=options.state_directory,
            worker=options.worker,
        )
        config = parts.config
        self._wire = SerialWire(config, port=options.port)
        if not options.await_port:
            self._wire.connect(now_ns=clock.now_ns())
        self._wire_ns = command_wire_ns(config)
        self._wire_wakes = 0  # since the timer's last
        board = parts.start_board_watch(now_ns=clock.now_ns())
        parts.supervisor.poll(clock.now_ns())  # the worker loads while we measure: that is the load to measure under
        self._real_time = request_real_time()
        timing = config.timing
        self._reserve_ns = (
            measure_reserve_ns(clock, fifo=self._real_time.fifo, tick_ns=timing.tick_ns)
            if timing.reserve_ns is None
            else timing.reserve_ns
        )
        self._settings = Settings.from_config(
            config, parts.assembly.fields, reserve_ns=self._reserve_ns, wire_ns=self._wire_ns
        )
        self._driver = Driver(
            settings=self._settings,
            wire=self._wire,
            worker=parts.supervisor,
            board=board,
            latch=parts.latch,
            recorder=parts.start_recorder(reserve_ns=self._reserve_ns, wire_ns=self._wire_ns),
            clock=clock,
        )

    def run(self) -> None:
        """Tick until the audience ends it."""
        self._audience.begin(self._settings, self._status())
        while not self._audience.ended:
            lateness_ns = self._wait()
            heard = self._audience.hear(self._clock.now_ns(), self._status)
            stale = self._parts.profile.conditions(self._parts.supervisor.ready)
            self._driver.conditions = (*stale, *heard.conditions)
            self._driver.step(
                self._clock.now_ns(),
                lateness_ns=lateness_ns,
                observation=heard.observation,
                operator=self._operator_words(heard),
            )
            self._audience.tell(self._driver, self._clock.now_ns())

    def close(self) -> None:
        """Leave the wire and end whoever works for us. Unless something has failed, the robot stands."""
        self._wire.close()
        self._parts.close()

    def _wait(self) -> int:
        """Wait for a message or the next timer; how late the timer was, 0 for a message."""
        filenos = [*self._audience.filenos, *self._parts.supervisor.filenos]
        wire = self._wire.fileno
        if wire is not None and self._wire_wakes < WIRE_WAKES_PER_TICK:
            filenos.append(wire)
        timeout_ns = max(0, self._driver.wake_ns - self._clock.now_ns())
        ready = select.select(filenos, [], [], timeout_ns / NS_PER_S)[0]
        self._wire_wakes += wire in ready
        lateness_ns = max(0, self._clock.now_ns() - self._driver.wake_ns)
        if lateness_ns:
            self._driver.lateness.note(lateness_ns)
            self._wire_wakes = 0
        return lateness_ns

    def _operator_words(self, heard: Heard) -> tuple[OperatorWord, ...]:
        """What the operator said, also in an observation that a newer one has superseded."""
        said = any(stop_word(one, settings=self._settings) for one in heard.superseded)
        return (*heard.operator, OperatorWord.STOP) if said else heard.operator

    def _status(self) -> Status:
        status = status_of(self._driver, self._parts, reserve_ns=self._reserve_ns, wire_ns=self._wire_ns)
        return dataclasses.replace(
            status,
            scheduling=self._real_time.scheduling,
            memory=self._real_time.memory,
            guarantee=self._wire.guarantee,
            link=f"{status.link} ({self._wire.note})" if self._wire.note else status.link,
            counters={**status.counters, **self._audience.counters},
        )


def main(argv: list[str]) -> int:
    """``FD`` is the caller's channel, ``OPTIONS`` the ``Options`` as JSON."""
    channel = Channel.from_fd(int(argv[0]), limit_bytes=PEER_LIMIT_BYTES)
    try:
        options = from_plain(Options, json.loads(argv[1]))
        process = GuardProcess(options=options, audience=Caller(channel), clock=SystemClock())
    except EdgeguardError as error:
        channel.send(failure_message(error))
        return error.exit_code
    try:
        process.run()
    finally:
        process.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
