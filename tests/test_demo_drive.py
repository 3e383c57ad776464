"""The demo's faults on a real guard, a real motor controller's process and a worker that is a fake: no model needed."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fake_worker import write_behaviour
from patience import wait_for

from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.board import read_fingerprint
from edgeguard.budget import Bound, PassCost, Profile, Schedule
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.config import load_config
from edgeguard.demo.drive import Drive
from edgeguard.demo.faults import FAULTS, Scene
from edgeguard.demo.operator import Operator
from edgeguard.demo.robot import Cycle, Robot
from edgeguard.demo.story import demo_config, motors_of
from edgeguard.demo.summary import Outcome, late
from edgeguard.demo.world import START, World
from edgeguard.errors import GuardGoneError
from edgeguard.runtime.handle import Guard
from edgeguard.types import Cause, Source

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")
CLOCK = SystemClock()
BY_NAME = {fault.name: fault for fault in FAULTS}
BOUND_NS = 100 * NS_PER_MS
PERCENTILE = 0.5  # half of the requests may be missed: whatever else the machine does, that is no drift


@pytest.fixture(scope="module")
def lived() -> list[Cycle]:
    return []


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory, lived: list[Cycle]) -> Iterator[Drive]:
    """A robot on an endless floor, whose model always wants to go ahead."""
    folder = tmp_path_factory.mktemp("demo")
    config, profile = folder / "demo.toml", folder / "profile.json"
    shutil.copy(demo_config(), config)
    write_behaviour(config, values=[{"move": "forward", "speed": 0.5}], passes=[16, 4], base_ms=1, token_ms=0.1)
    write_profile(_profile(), profile)
    with ExitStack() as undo:
        motors = undo.enter_context(motors_of(load_config(config)))
        guard = Guard.start(
            config,
            profile=profile,
            port=motors.port,
            state_directory=folder / "state",
            worker=[sys.executable, str(FAKE_WORKER), "{fd}", str(config), str(profile)],
        )
        undo.enter_context(guard)
        world = World(walls=(), start=START)
        robot = Robot(guard=guard, motors=motors, world=world, operator=Operator(seed=1), clock=CLOCK)
        scene = Scene(robot=robot, clock=CLOCK, longest_phrase=160, undo=undo)
        drive = Drive(robot=robot, scene=scene, clock=CLOCK, seen=lived.append)
        drive.wait_armed()
        yield drive


def _profile() -> Profile:
    return Profile(
        kind="quick",
        created="2026-01-01T00:00:00Z",
        fingerprint={**read_fingerprint(), "model": "fake"},
        schedule=Schedule(period_ns=200 * NS_PER_MS),
        bounds=(
            Bound(
                bound_ns=BOUND_NS,
                score=1.2,
                rank=1,
                percentile=PERCENTILE,
                confidence=0.95,
                n=299,
                effective_n=299,
                lag=1,
            ),
        ),
        cost=PassCost(sizes=(2, 20), prices_ns=(1e6, 3e6), p_reference=360, per_cached_ns=0.0, constant_ns=300_000),
        sweep=(),
        requests=(),
    )


def test_quiet_periods_are_the_models(drive: Drive, lived: list[Cycle]) -> None:
    cycles: list[Cycle] = []

    def quiet() -> bool:
        """On a machine that does not set the guard aside meanwhile."""
        cycles.extend(five := drive.quiet(5))
        decided = all(cycle.record.decision.source is Source.MODEL for cycle in five)
        return decided and not any(late(cycle.record) for cycle in five)

    wait_for(quiet, "five decisions of the model's in a row, in time")
    assert lived == cycles


@pytest.mark.parametrize(
    ("name", "cause"),
    [("sensor frozen", Cause.STALE_OBSERVATION), ("worker stopped", Cause.MISS), ("link cut", Cause.LINK_LOST)],
)
def test_a_fault_stops_the_robot_and_passes(drive: Drive, name: str, cause: Cause) -> None:
    stopper = "the motor controller" if name == "link cut" else "the guard"
    suffered: list[tuple[Outcome, list[Cycle]]] = []

    def suffer() -> bool:
        """Beside which the machine sets nobody aside: that is a fault of its own, of which the robot stops first."""
        drive.until_driving()
        suffered.append(drive.suffer(BY_NAME[name]))
        said = suffered[-1][0]
        return said.stopped_by.startswith(stopper) and Cause.GUARD_OVERRUN.value not in said.why

    wait_for(suffer, f"one fault alone, and {stopper} stops it", stands=lambda: suffered[-1][0])
    outcome, cycles = suffered[-1]
    assert outcome.stopped_ms is not None
    assert outcome.stopped_ms < 10_000
    assert 0 < outcome.distance_m < 0.6
    assert cause.value in outcome.why
    assert outcome.recovered_s is not None
    assert cycles[-1].record.decision.source is Source.MODEL


def test_the_last_fault_ends_it_and_the_motor_controller_stops_the_robot(drive: Drive) -> None:
    drive.until_driving()
    outcome, cycles = drive.suffer(BY_NAME["guard killed"])
    assert cycles == []
    assert outcome.stopped_by == "the motor controller's link time-out"
    assert outcome.stopped_ms is not None
    assert outcome.stopped_ms < 10_000, "time to live, a tick, and braking at 1.5 m/s²: 430 ms on a machine of its own"
    assert outcome.ended_well
    with pytest.raises(GuardGoneError):
        drive.quiet(1)
