"""A small robot under guard for tests: a configuration, a profile, a motor controller on a pty, a scripted worker.

The machine that tests run on may set any process aside for some 100 ms, at any time. Nothing that this robot is told
lets that keep it from being armed again soon: the reserve is not measured, a worker or a motor controller that says
nothing is waited for, and of its requests half may exceed their bound. So tests wait for what is to be, and never count
on the next period.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from fake_worker import write_behaviour
from patience import PATIENCE_S, wait_for

from edgeguard import Guard
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.board import read_fingerprint
from edgeguard.budget import Bound, PassCost, Profile, Schedule
from edgeguard.clock import NS_PER_MS
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.types import CycleRecord

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")

CONFIG = """
[timing]
period_ms = 60
deadline_ms = 60
tick_ms = 10
max_age_ms = 40
observation_timeout_ms = 200
reserve_ms = 5

[prompt]
user = "{said} {front_m}"

[answer.schema]
type = "object"
properties = { go = { enum = ["forward", "stop"] } }

[[field]]
name = "said"
kind = "text"
stop_words = ["stop"]

[[field]]
name = "front_m"
min = 0
max = 10
max_age_ms = 200

[[axis]]
name = "linear"
unit = "m/s"
source = { field = "go", values = { forward = 0.4, stop = 0.0 } }
min = -0.5
max = 0.5
rate_up = 2
decel_comfortable = 2
decel_emergency = 4

[[rule]]
name = "obstacle"
when = { field = "front_m", below = 0.3 }
grade = "emergency"
always = true

[[rule]]
name = "stop"

[guard]
dwell_ms = 100
hung_after_ms = 1500

[link]
timeout_ms = 80
echo_timeout_ms = 1000
"""

AHEAD = {"said": "go", "front_m": 2.0}
FORWARD = {"passes": [20, 3], "base_ms": 1, "token_ms": 0.1, "bound_ms": 20}


class Robot:
    """The files of one robot, its motor controller, and the guards that are started on them."""

    def __init__(self, folder: Path, motors: Simulator) -> None:
        self.folder = folder
        self.motors = motors
        self.config = folder / "robot.toml"
        self.config.write_text(CONFIG)
        self.profile = folder / "robot.profile.json"
        self.behave()
        self.write_profile()

    def behave(self, **keys) -> None:
        """How the worker behaves from its next request on."""
        write_behaviour(self.config, **{**FORWARD, "values": [{"go": "forward"}], **keys})

    def write_profile(self, *, bound_ms: int = 20, percentile: float = 0.5, **fingerprint: str) -> None:
        """The profile of this machine with the fake worker, or of one that differs in ``fingerprint``; the share
        ``percentile`` of its requests keeps to the bound.
        """
        bound = Bound(
            bound_ns=bound_ms * NS_PER_MS, score=1.2, rank=1, percentile=percentile, confidence=0.95,
            n=299, effective_n=299, lag=1,
        )  # fmt: skip
        profile = Profile(
            kind="quick",
            created="2026-01-01T00:00:00Z",
            fingerprint={**read_fingerprint(), "model": "fake", **fingerprint},
            schedule=Schedule(period_ns=60 * NS_PER_MS),
            bounds=(bound,),
            cost=PassCost(
                sizes=(2, 20), prices_ns=(1.2e6, 3e6), p_reference=100, per_cached_ns=0.0, constant_ns=300_000
            ),
            sweep=(),
            requests=(),
        )
        write_profile(profile, self.profile)

    @property
    def worker(self) -> list[str]:
        return [sys.executable, str(FAKE_WORKER), "{fd}", str(self.config), str(self.profile)]

    @contextlib.contextmanager
    def guarded(self, *, armed: bool = True, port: str | None = None) -> Iterator[Guard]:
        """A guard on this robot, armed unless told otherwise."""
        with Guard.start(
            self.config,
            profile=self.profile,
            port=port or self.motors.port,
            state_directory=self.folder / "state",
            worker=self.worker,
        ) as guard:
            if armed:
                guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
            yield guard


def motors() -> Simulator:
    return Simulator(axes=[MotorAxis(name="linear", accel=4, decel=4)], link_timeout_ms=80)


def until_recorded(guard: Guard) -> None:
    """Decisions until the recorder has taken its first steps: it starts beside the guard, and without its priority."""
    drive_until(guard, lambda _: "on the disk" in guard.status().recorder, "it is recorded")


def drive(guard: Guard, cycles: int, **fields) -> list[CycleRecord]:
    """So many decisions, each on an observation of its own."""
    return [guard.decide({**AHEAD, **fields}) for _ in itertools.islice(guard.periods(), cycles)]


def drive_until(guard: Guard, wanted: Callable[[CycleRecord], object], why: str, **fields) -> list[CycleRecord]:
    """Decisions until there is one that is ``wanted``, each on an observation of its own."""
    periods, records = guard.periods(), []

    def look() -> object:
        next(periods)
        records.append(guard.decide({**AHEAD, **fields}))
        return wanted(records[-1])

    wait_for(look, why, stands=guard.status, pause_s=0)
    return records
