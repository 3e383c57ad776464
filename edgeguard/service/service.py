"""The guard as a service: sockets instead of a caller, signals, and a manager that wants to be told.

``python -m edgeguard.service.service OPTIONS`` is what ``edgeguard run`` becomes. SIGTERM and SIGINT slow the robot
down and end the process at standstill, at the latest when a stop's own time is over. SIGHUP has the files
checked by a process of ordinary priority, while the guard goes on with the old ones; good ones are taken over at
standstill by starting anew in the same process, wrong ones change nothing. The manager's watchdog is fed after steps of
the core, and by nothing else.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from edgeguard import interrupt
from edgeguard.clock import NS_PER_MS, NS_PER_US, SystemClock
from edgeguard.errors import EdgeguardError
from edgeguard.guard.settings import Settings
from edgeguard.plain import from_plain
from edgeguard.runtime.audience import Heard
from edgeguard.runtime.departure import Departure
from edgeguard.runtime.driver import Driver
from edgeguard.runtime.process import GuardProcess, Options
from edgeguard.runtime.status import Status
from edgeguard.service.notify import Notifier
from edgeguard.service.sockets import Sockets
from edgeguard.types import Cause

HEARTBEAT_NS = 250 * NS_PER_MS
"""How often the manager hears of us; at least four times per watchdog interval."""

START_US = 30_000_000
"""What a start may take on a slow board: the manager is asked to wait so long, also before a restart for a reload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """``command`` is how we were started: a reload checks and starts it again. Groups are numbers."""

    guard: Options
    sockets: str
    group: int | None
    operators: int | None
    command: tuple[str, ...]


class Service:
    """The audience of a guard that nobody holds a handle to. ``reload``: it ends to begin anew."""

    def __init__(self, *, sockets: Sockets, notifier: Notifier, command: tuple[str, ...]) -> None:
        self._sockets = sockets
        self._notifier = notifier
        self._command = command
        self._told: Cause | None = None  # why to leave
        self._told_by = ""
        self._reload_asked = False
        self._check: subprocess.Popen[bytes] | None = None
        self._note = ""
        self._departure: Departure | None = None
        self._settings: Settings | None = None
        self._heartbeat_ns = min(HEARTBEAT_NS, (notifier.watchdog_ns or HEARTBEAT_NS * 4) // 4)
        self._next_beat_ns = 0
        self._status_text = ""
        self._ready = False
        self.ended = False

    @property
    def reload(self) -> bool:
        return self._told is Cause.CONFIGURATION_RELOAD

    @property
    def counters(self) -> Mapping[str, int]:
        return self._sockets.counters

    @property
    def filenos(self) -> list[int]:
        return self._sockets.filenos

    def begin(self, settings: Settings, status: Status) -> None:  # noqa: ARG002 (a caller wants it)
        self._settings = settings
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_end)
        signal.signal(signal.SIGHUP, self._on_reload)

    def hear(self, now_ns: int, status: Callable[[], Status]) -> Heard:
        """Also why to leave, once it was told to."""
        heard = self._sockets.hear(now_ns, status)
        self._watch_check()
        if self._told is None or self._settings is None:
            return heard
        if self._departure is None:
            self._departure = Departure(self._settings, cause=self._told, detail=self._told_by, now_ns=now_ns)
            self._announce_leaving(now_ns)
        return self._departure.hear(heard)

    def tell(self, driver: Driver, now_ns: int) -> None:
        self._sockets.publish(driver.take_records(), driver.take_events())
        if self._departure is not None:
            self.ended = self._departure.is_over(driver, now_ns)
        if now_ns >= self._next_beat_ns:
            self._next_beat_ns = now_ns + self._heartbeat_ns
            self._beat(driver)

    def close(self) -> None:
        self._sockets.close()
        if self._check is not None:
            self._check.kill()
            self._check.wait()

    def _on_end(self, number: int, _frame: FrameType | None) -> None:
        self._told, self._told_by = Cause.SHUTDOWN, signal.Signals(number).name

    def _on_reload(self, _number: int, _frame: FrameType | None) -> None:
        self._reload_asked = True

    def _watch_check(self) -> None:
        """Start the check that was asked for; draw the conclusion when it has ended."""
        if self._reload_asked and self._check is None and self._told is None:
            self._reload_asked = False
            self._check = subprocess.Popen(
                [*self._command, "--check"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        elif self._check is not None and (code := self._check.poll()) is not None:
            self._check = None
            if code == 0 and self._told is None:
                self._told, self._told_by = Cause.CONFIGURATION_RELOAD, signal.SIGHUP.name
            elif code != 0:
                self._note = f" (reload refused, exit code {code}: the old configuration stays; the log says why)"

    def _announce_leaving(self, now_ns: int) -> None:
        if self.reload:
            self._notifier.say("RELOADING=1", f"MONOTONIC_USEC={now_ns // NS_PER_US}", f"WATCHDOG_USEC={START_US}")
        else:
            self._notifier.say("STOPPING=1")

    def _beat(self, driver: Driver) -> None:
        lines = ["WATCHDOG=1"]
        if not self._ready:
            self._ready = True
            lines.append("READY=1")
            if self._notifier.watchdog_ns is not None:
                lines.append(f"WATCHDOG_USEC={self._notifier.watchdog_ns // NS_PER_US}")
        text = _status_text(driver) + self._note
        if text != self._status_text:
            self._status_text = text
            lines.append(f"STATUS={text}")
        self._notifier.say(*lines)


def _status_text(driver: Driver) -> str:
    state = driver.state
    causes = ", ".join(cause.value for cause in state.causes)
    return " ".join(f"{state.mode.value}: {causes}: {state.detail}".split()) if causes else state.mode.value


def main(argv: list[str]) -> int:
    """``OPTIONS`` are the ``ServiceOptions`` as JSON. The exit code is that of the error, 0 after a stop."""
    interrupt.ends_at_once()  # until it ticks nothing moves
    options = from_plain(ServiceOptions, json.loads(argv[0]))
    notifier = Notifier.from_environment()
    notifier.say("STATUS=starting", f"EXTEND_TIMEOUT_USEC={START_US}")
    try:
        reload = _serve(options, notifier)
    except EdgeguardError as error:
        sys.stderr.write(f"edgeguard: {error}\n")
        notifier.say(f"STATUS=failed: {' '.join(str(error).split())}")
        return error.exit_code
    finally:
        notifier.close()
    if reload:
        interrupt.is_held_back()
        os.execv(options.command[0], options.command)
    return 0


def _serve(options: ServiceOptions, notifier: Notifier) -> bool:
    """Guard until told to leave; whether to begin anew."""
    sockets = Sockets(Path(options.sockets), group=options.group, operators=options.operators)
    service = Service(sockets=sockets, notifier=notifier, command=options.command)
    try:
        process = GuardProcess(options=options.guard, audience=service, clock=SystemClock())
        try:
            process.run()
        finally:
            process.close()
    finally:
        service.close()
    return service.reload


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
