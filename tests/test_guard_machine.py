"""The core under everything that can happen, in any order: the promises of ``guard_witness`` hold at every step.

Hypothesis searches short stories and shrinks what breaks; a seeded run makes long ones (``-m slow``: 100,000 steps).
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Decimal

import pytest
from guard_rig import FAST, START_NS, Rig
from guard_witness import Witness
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from plant import PLANT, settings

from edgeguard.budget.drift import REPROOF
from edgeguard.clock import NS_PER_MS
from edgeguard.guard.causes import TABLE, Clear
from edgeguard.guard.interface import WorkerPhase
from edgeguard.types import Answer, BoardState, Cause, Finish, Mode, Observation, OperatorWord, Source, ThermalLevel
from edgeguard.types.wire import LinkState, MotorFlag

MS = NS_PER_MS
EXTERNAL = (
    Cause.PROFILE_STALE,
    Cause.LEVEL_UNCALIBRATED,
    Cause.DRIFT_ALARM,
    Cause.TEMPERATURE_CRITICAL,
    Cause.LATCH_FILE,
)
PLANTS = (
    settings(),
    settings(PLANT.replace("max_age_ms = 150", "") + "[timing]\ndeadline_ms = 400\nmax_age_ms = 390\n"),
    settings(
        PLANT.replace("maximum = 0.5", "maximum = 1.0").replace(
            "rate_up = 1.0", 'rate_up = 1.0\nrate_down = 3.0\non_violation = "clamp"\ngroup = "base"'
        )
        + '[guard.actions]\nemergency = "hold"\nterminal = "torque_off"\n[guard]\ndwell_ms = 300\n'
    ),
    settings(
        PLANT
        + """
        [budget]
        uncalibrated_factor = 1.5
        [[plan]]
        name = "full"
        [[plan]]
        name = "cautious"
        [plan.schema]
        type = "object"
        [plan.schema.properties]
        speed = { enum = [0, 0.5] }
        turn = { enum = ["straight"] }
        grip = { type = "boolean" }
        """
    ),
)
RUNGS = ("", "full", "cautious", "one that is not there")
answers = st.fixed_dictionaries(
    {
        "speed": st.sampled_from([Decimal("0.5"), Decimal("-0.2"), Decimal("1.0"), 0, 7, math.nan, "fast", None]),
        "turn": st.sampled_from(["left", "straight", "right", "up"]),
        "grip": st.booleans(),
    }
)
claims = st.fixed_dictionaries(
    {"rung": st.sampled_from(RUNGS), "bound_ns": st.sampled_from([None, -1, 0, 50 * MS, 10**15])}
)
"""What a worker says of an answer."""
readings = st.sampled_from([0.1, 0.4, 2.0, 11.0, None, math.nan, math.inf, "near", True])


class World(Rig):
    """A rig whose plant lags behind its set-point, and whose every step is witnessed."""

    def __init__(self, plant) -> None:
        super().__init__(plant)
        self.witness = Witness(plant)
        self.follows = False

    def step(self, **arrivals):
        before = self.state
        effects = super().step(**arrivals)
        self.witness.saw(before, self.now_ns, self.inputs, self.state, effects)
        return effects

    def advance(self, ms: float) -> None:
        self._lag()
        super().advance(ms)

    @property
    def leaves(self) -> bool:
        return any(TABLE[cause].clear is Clear.RESTART for cause in self.causes)

    @property
    def at_rest(self) -> bool:
        moved = zip(self.settings.axes, self.state.motion.axes, strict=True)
        return all(at.value == axis.safe for axis, at in moved if axis.safe is not None)

    def heal(self) -> None:
        """Everything is as it should be, and stands."""
        self.phase, self.bound_ns, self.hotter_ns = WorkerPhase.READY, 100 * MS, ()
        self.link, self.echoes, self.flags, self.moving = LinkState.UP, True, MotorFlag(0), None
        self.conditions = ()
        self.now_ns = max(self.now_ns, START_NS)  # a machine's clock begins at 0
        self.step(board=BoardState(level=ThermalLevel.NOMINAL, observed=True, critical=False, hottest_c=40, read_ns=1))
        for _ in range(20):
            self.advance(100)
        self.measured = {axis.name: 0.0 for axis in self.settings.axes}
        self.cycle(latency_ms=50)

    def _lag(self) -> None:
        if self.sent:
            for name, goal in self.sent[-1][1].axes.items():
                value = self.measured[name]
                self.measured[name] = goal if value is None else value + 0.6 * (goal - value)


class GuardMachine(RuleBasedStateMachine):
    """Every rule is something that the world can do to the guard."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(random.Random(0).choice(PLANTS))

    @rule(plant=st.sampled_from(PLANTS))
    def start_anew(self, plant):
        self.world = World(plant)

    @rule(ms=st.integers(0, 600))
    def wait(self, ms):
        self.world.advance(ms)

    @rule(cycles=st.integers(1, 6), latency_ms=st.integers(0, 190))
    def run_well(self, cycles, latency_ms):
        for _ in range(cycles):
            self.world.cycle(latency_ms=latency_ms)

    @rule(
        age_ms=st.one_of(st.floats(-10, 500), st.sampled_from([0.0, 100.0, 1e6, -1e6])),
        front_m=readings,
        docked=st.sampled_from([True, False, None]),
        said=st.sampled_from(["go", "stop", "Halt!", "x" * 90, None]),
        older_ms=st.floats(-5, 200),
    )
    def observe(self, age_ms, front_m, docked, said, older_ms):
        self.world.observe(age_ms=age_ms, ages_ms={"front_m": older_ms}, front_m=front_m, docked=docked, said=said)

    @rule(captured_ns=st.sampled_from([0, -1, 10**30, 1]))
    def observe_absurdly(self, captured_ns):
        self.world.step(observation=Observation(fields={}, captured_ns=captured_ns))

    @rule(
        values=answers, finish=st.sampled_from(Finish), epoch=st.integers(-1, 1), back=st.integers(-1, 3), said=claims
    )
    def answer(self, values, finish, epoch, back, said):
        asked = self.world.request
        if asked is not None:
            about = {"request_id": asked.request_id - back, "epoch": asked.epoch + epoch, **said}
            self.world.step(answers=(Answer(finish=finish, values=values, **about),))

    @rule(
        level=st.sampled_from(ThermalLevel),
        critical=st.booleans(),
        hotter_ms=st.lists(st.integers(50, 300), max_size=2),
    )
    def change_the_board(self, level, critical, hotter_ms):
        self.world.hotter_ns = tuple(bound_ms * MS for bound_ms in sorted(hotter_ms))
        self.world.step(
            board=BoardState(
                level=level, observed=True, critical=critical, hottest_c=None, read_ns=self.world.now_ns, detail="hot"
            )
        )

    @rule(words=st.lists(st.sampled_from(OperatorWord), min_size=1, max_size=2))
    def speak(self, words):
        self.world.step(operator=tuple(words))

    @rule()
    def rearm(self):
        self.world.conditions, self.world.flags = (), MotorFlag(0)
        self.world.advance(20)
        self.world.step(operator=(OperatorWord.REARM,))

    @rule(phase=st.sampled_from(WorkerPhase), bound_ms=st.sampled_from([None, 50, 150, 300]))
    def change_the_worker(self, phase, bound_ms):
        self.world.phase, self.world.bound_ns = phase, None if bound_ms is None else bound_ms * MS
        self.world.step()

    @rule(
        link=st.sampled_from(LinkState),
        new_session=st.booleans(),
        echoes=st.booleans(),
        moving=st.sampled_from([True, None]),
        flags=st.sampled_from([MotorFlag(0)] * 4 + list(MotorFlag)),
    )
    def change_the_link(self, link, new_session, echoes, moving, flags):
        self.world.link, self.world.echoes, self.world.flags, self.world.moving = link, echoes, flags, moving
        self.world.generation += new_session
        self.world.step()

    @rule(causes=st.lists(st.sampled_from(EXTERNAL), max_size=2))
    def change_the_conditions(self, causes):
        self.world.conditions = tuple((cause, "seen elsewhere") for cause in causes)
        self.world.step()

    @rule(offset_ms=st.integers(-30, 30), lateness_ms=st.integers(0, 30), back_ms=st.sampled_from([0, 0, 0, 5, 10**6]))
    def disturb_the_clock(self, offset_ms, lateness_ms, back_ms):
        self.world.offset_ns += offset_ms * MS
        self.world.now_ns -= back_ms * MS
        self.world.step(lateness_ns=lateness_ms * MS)

    @rule(ms=st.sampled_from([60, 80, 81, 300]), suspended=st.booleans())
    def sleep(self, ms, suspended):
        """The guard was not called for a while."""
        if suspended:
            self.world.offset_ns += ms * MS
        else:
            self.world.now_ns += ms * MS
        self.world.step()

    @rule(cause=st.sampled_from([Cause.SHUTDOWN, Cause.CONFIGURATION_RELOAD]))
    def be_told_to_leave(self, cause):
        self.world.conditions = ((cause, "told"),)
        self.world.step()

    @rule()
    def leave_at_standstill(self):
        if self.world.leaves:
            self.world.advance(3_000)
            assert self.world.at_rest
            self.world = World(self.world.settings)

    @rule()
    def recover(self):
        """Whatever has happened: with all causes gone and enough good answers it is armed again."""
        if not self.world.leaves:
            self.world.heal()
            self.world.step(operator=(OperatorWord.REARM,))
            for _ in range(2 * self.world.settings.on_time_to_arm + REPROOF):
                if self.world.mode is not Mode.ARMED:
                    self.world.cycle(latency_ms=50)
            assert self.world.mode is Mode.ARMED, self.world.state.detail
            self.world.cycle(latency_ms=50)
            assert self.world.records[-1].decision.source is Source.MODEL

    @rule()
    def measure_nothing(self):
        self.world.measured = dict.fromkeys(self.world.measured)


GuardMachine.TestCase.settings = hypothesis_settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestGuardMachine = GuardMachine.TestCase


def live(world: World, dice: random.Random, steps: int) -> set[Mode]:
    """A life of faults: mostly whole periods with good and late answers, and now and then something else."""
    modes = set()
    while world.witness.steps < steps:
        modes.add(world.mode)
        chance = dice.random()
        if chance < 0.8:
            fields = {"front_m": dice.choice([2.0] * 12 + [0.1, 0.4, None]), "docked": dice.random() < 0.1}
            world.cycle(
                dice.choice([FAST, {**FAST, "turn": "left"}]),
                latency_ms=dice.choice([20, 100, 150, 186, 199]),
                rung=None if dice.random() < 0.97 else dice.choice(RUNGS),
                **fields,
            )
        elif chance < 0.85:
            world.advance(dice.uniform(0, 900))
        elif chance < 0.88:
            world.phase = dice.choice(list(WorkerPhase))
            world.advance(dice.uniform(0, 300))
            world.phase = WorkerPhase.READY
        elif chance < 0.91:
            world.link, world.generation = dice.choice(list(LinkState)), world.generation + 1
            world.advance(dice.uniform(0, 300))
            world.link = LinkState.UP
        elif chance < 0.93:
            world.conditions = ((dice.choice(EXTERNAL), "seen elsewhere"),)
            world.advance(dice.uniform(0, 100))
            world.conditions = ()
        elif chance < 0.95:
            world.flags = dice.choice(list(MotorFlag))
            world.advance(dice.uniform(0, 100))
            world.flags = MotorFlag(0)
        elif chance < 0.96:
            world.step(operator=(OperatorWord.STOP,))
        elif chance < 0.965:
            world.now_ns += dice.choice([60, 81, 300]) * MS
            world.step()
        elif chance < 0.97:
            world.step(lateness_ns=dice.randrange(40) * MS)
        else:
            world.advance(20)
            world.step(operator=(OperatorWord.REARM,))
    return modes


TRUSTING = [replace(plant, alarm_at=math.inf) for plant in PLANTS]
"""A life of faults would be one long drift alarm: the short stories above have that."""


@pytest.mark.parametrize("plant", TRUSTING, ids=["plain", "long deadline", "clamps", "ladder"])
def test_a_long_life_of_faults(plant):
    assert live(World(plant), random.Random(7), 4_000) == set(Mode)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_thousand_steps(seed):
    for plant in TRUSTING:
        assert live(World(plant), random.Random(seed), 12_000) == set(Mode)
