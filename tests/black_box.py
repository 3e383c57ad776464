"""A guard's end of the black box: a recorder to which steps are noted, here or in a process that waits to be killed.

``python black_box.py FILE`` records without end and prints the number of each step up to which its recorder says
that it is on the disk. Every step is a transition, so that every one is synced.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from flights import SCENARIOS
from patience import wait_for

from edgeguard.guard.interface import Effects, Inputs, WorkerPhase, WorkerStatus
from edgeguard.guard.state import GuardState
from edgeguard.recorder.recorder import FlightRecorder
from edgeguard.runtime.assembly import assemble
from edgeguard.simulation.simulation import flight_header
from edgeguard.types import Event, LinkState, LinkStatus

QUIET = Inputs(worker=WorkerStatus(phase=WorkerPhase.READY), link=LinkStatus(state=LinkState.LOST, problem="unplugged"))


class BlackBox:
    """``number`` is the last step's; ``acknowledged`` are the numbers that were said to be on the disk."""

    def __init__(self, file: Path) -> None:
        header = flight_header(assemble(SCENARIOS / "robot.toml").config)
        self.recorder = FlightRecorder(file, header=header)
        self.number = 0
        self.acknowledged: set[int] = set()

    @property
    def pid(self) -> int | None:
        """The recorder's that has last been heard of."""
        return None if self.recorder.report is None else self.recorder.report.pid

    def note(self) -> None:
        """One more step."""
        self.number += 1
        now_ns = time.monotonic_ns()
        happened = Event(at_ns=now_ns, name="tested", detail=f"step {self.number}")
        state = GuardState.initial(now_ns=now_ns, latched=False)
        self.recorder.note(state, now_ns, QUIET, Effects(events=(happened,)))
        self.hear()

    def hear(self) -> None:
        """What the recorder has said since."""
        self.recorder.hear()
        if self.recorder.report is not None and self.recorder.report.synced:
            self.acknowledged.add(self.recorder.report.synced)

    def note_until(self, done: Callable[[], bool], *, pause_s: float = 0.001) -> None:
        """Steps until ``done`` says so."""

        def look() -> bool:
            if done():  # before another step, which nobody can have kept yet
                return True
            self.note()
            return False

        wait_for(look, "what is noted for", stands=lambda: self.recorder.standing, pause_s=pause_s)

    def note_until_kept(self) -> None:
        """One more step, and another as long as the last is not on the disk: then nothing is on its way."""

        def kept() -> bool:
            self.hear()
            return self.number in self.acknowledged

        self.note_until(kept, pause_s=0.2)

    def close(self) -> None:
        """As a guard that ends, with its last step on the disk."""
        self.note_until_kept()
        self.recorder.close()


def main(file: Path) -> None:
    box, said = BlackBox(file), 0
    while True:
        box.note()
        for number in sorted(one for one in box.acknowledged if one > said):
            said = number
            sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        time.sleep(0.0005)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
