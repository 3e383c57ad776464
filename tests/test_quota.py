"""A processor quota that comes after calibration: a real guard, a real worker, a real limit on the worker's process.

Nothing of it is told to the guard, and nothing is judged by a time that this machine might not keep: the period is
long enough for what is measured here and now, how hard the quota is follows from that, and what a late frame is also
from how late this machine let the guard and the motor controller's simulator be, which both say so.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from bench_robot import HASTY
from cpu_quota import NoQuotaError, Quota, by_signals, by_the_kernel, cpu_time_ns
from engine_setup import write_config
from tiny import tiny_model

from edgeguard import Guard
from edgeguard.bench.calibration.calibrate import calibrate
from edgeguard.bench.observations import draw_fields
from edgeguard.bench.subject import model_subject
from edgeguard.budget.drift import REPROOF
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock, ms_from_ns
from edgeguard.config import Config, load_config
from edgeguard.demo.summary import GRACE_NS
from edgeguard.errors import BusyError
from edgeguard.guard.events import EventName
from edgeguard.guard.forecast import MARGIN
from edgeguard.link.controller_log import StopCause
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import ControllerReport, Simulator
from edgeguard.recorder.flight import last_flight
from edgeguard.runtime.status import Status
from edgeguard.types import Cause, CycleRecord, Mode, Source

CLOCK = SystemClock()
FIRST, AUTOGROUP = -19, Path("/proc/self/autogroup")
LAYERS = 48
"""Some twelve milliseconds of one processor a request."""

TICK_NS = 4 * NS_PER_MS
"""So much runs before the kernel looks, at 250 Hz: of a request's first milliseconds a quota takes no notice."""

ROOM = 2.0
"""The margin of this calibration: what others do to it from one minute to the next is no drift."""

PERIODS_MS = (200, 500, 1_200)
"""The first whose half the bound leaves free: a machine that is slow here and now gets more time."""

SILENCE_NS = 60 * NS_PER_MS
"""Who is as late as this may be silent for the link's time-out, which is three ticks more."""

TIMING = """
[timing]
period_ms = {period_ms}
deadline_ms = {period_ms}
tick_ms = 20
[budget]
max_miss_rate = 0.1
[guard]
hung_after_ms = 10000
[link]
timeout_ms = 120
[model]
threads = 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A robot that has been calibrated: its files, and the bound that was found, with its margin."""

    config: Config
    profile: Path
    bound_ns: int

    @property
    def disarming_ns(self) -> int:
        """Requests that take longer than this disarm the model."""
        return round(self.bound_ns * MARGIN)

    @property
    def slow_ns(self) -> int:
        """What requests are to take with the quota: too long by far, and mostly in time."""
        return self.disarming_ns + (self.config.timing.deadline_ns - self.disarming_ns) * 3 // 4


@pytest.fixture(scope="module")
def first() -> Iterator[None]:
    """We and what we start come before others, where this user may say so: what else runs where tests run would be a
    drift, and rightly. ``AUTOGROUP`` is of our session."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
        AUTOGROUP.write_text(str(FIRST))
    yield
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, before)
        AUTOGROUP.write_text("0")


@pytest.fixture(scope="module")
def board(first: None, tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("robot")
    model = tiny_model(folder, layers=LAYERS)
    for period_ms in PERIODS_MS:
        with contextlib.suppress(BusyError):
            board = calibrated(folder, model, period_ms=period_ms)
            if 2 * board.disarming_ns <= board.config.timing.deadline_ns:
                return board
    pytest.skip("this machine is too busy: no bound can be named that leaves room for a quota to tell")


def calibrated(folder: Path, model: Path, *, period_ms: int) -> Board:
    changes = {
        "[model]\n": TIMING.format(period_ms=period_ms), "./model": str(model), "speed = 0.0": "speed = 0.4",
        "minimum = 0,": "minimum = 0.4,",
    }  # fmt: skip
    config, profile = load_config(write_config(folder, *changes.items())), folder / "robot.profile.json"
    subject = replace(model_subject(config), command=lambda _, prices: command(config, prices))
    effort = replace(HASTY, percentile=0.9, margin=ROOM, limit_ns=90 * NS_PER_S)
    measured = calibrate(config, clock=CLOCK, out=profile, effort=effort, subject=subject)
    return Board(config=config, profile=profile, bound_ns=measured.bound.bound_ns)


def command(config: Config, profile: Path | None) -> list[str]:
    """The worker's, with its session first among all (``first``): sessions share the processor before processes do."""
    first = f'(echo {FIRST} > /proc/self/autogroup) 2> /dev/null; exec "$@"'
    return ["sh", "-c", first, "sh", *model_subject(config).command(config.file, profile)]


class Driver:
    """The robot's own software: a new observation every period. Everything that was decided is in ``records``."""

    def __init__(self, guard: Guard, board: Board) -> None:
        self.records: list[CycleRecord] = []
        self._guard = guard
        self._fields = draw_fields(board.config, seed=3)

    def drive(self, cycles: int) -> list[CycleRecord]:
        """So many decisions."""
        return [self._decide() for _ in itertools.islice(self._guard.periods(), cycles)]

    def drive_until(self, wanted: Callable[[Status], bool], *, cycles: int) -> list[CycleRecord]:
        """Until the guard stands as ``wanted``; in so many periods at most it has to."""
        began = len(self.records)
        for _ in itertools.islice(self._guard.periods(), cycles):
            self._decide()
            status = self._guard.status()
            if wanted(status):
                return self.records[began:]
        took_ms = [round(ms_from_ns(took_ns(one))) for one in self.records[began:]]
        raise AssertionError(
            f"not {wanted.__name__} but {status.mode.value} ({status.detail}); requests took {took_ms}"
        )

    def _decide(self) -> CycleRecord:
        self.records.append(self._guard.decide(next(self._fields)))
        return self.records[-1]


def armed(status: Status) -> bool:
    return status.mode is Mode.ARMED


def alarmed(status: Status) -> bool:
    return Cause.DRIFT_ALARM in status.causes


def travelled_m(controller: Simulator) -> float:
    """How far it has gone so far, whichever way."""
    return controller.where().travel["linear"]


def motors() -> Simulator:
    return Simulator(axes=[MotorAxis(name="linear", accel=4, decel=4)], link_timeout_ms=120)


def sources(records: Sequence[CycleRecord]) -> set[Source]:
    return {one.decision.source for one in records}


def took_ns(record: CycleRecord) -> int:
    """From the release of a request to its answer, or to where it was not waited for any longer."""
    return record.decision.decided_ns - record.released_ns


def disarming_ns(record: CycleRecord, board: Board) -> float:
    """What the guard holds against a request: that it took longer than this, by what it was admitted with."""
    admitted_ns = None if record.answer is None else record.answer.bound_ns
    return board.disarming_ns if admitted_ns is None else admitted_ns * MARGIN


def assert_none_late(
    records: Sequence[CycleRecord], report: ControllerReport, *, since_ns: int, kept_waiting_ns: int
) -> None:
    """The first frame after each decision had reached the motor controller by the deadline: but for as much as the
    demo allows, and what both ends were kept waiting by this machine. No silence has stopped the robot, unless they
    were."""
    arrivals_ns = [one.received_ns for one in report.received]
    for record in records:
        if record.observation is None or record.budget is None or record.released_ns < since_ns:
            continue
        by_ns = record.observation.captured_ns + record.budget.deadline_ns + GRACE_NS + kept_waiting_ns
        assert arrivals_ns[bisect_left(arrivals_ns, record.decision.decided_ns)] <= by_ns, record
    silent = {StopCause.LIFE, StopCause.LINK_TIMEOUT} & {stop.cause for stop in report.stops}
    assert not silent or kept_waiting_ns > SILENCE_NS, report.stops


def events_of(folder: Path, *, since_ns: int) -> list[str]:
    """The transitions in the flight log that are about the bound, the alarm and being armed, in their order."""
    events = [one for cycle in last_flight(folder / "flight.log").cycles() for one in cycle.events]
    said = [f"{one.name}: {one.detail}" for one in events if one.at_ns >= since_ns]
    known = {
        EventName.MARGIN.value: "margin",
        f"{EventName.RAISED.value}: {Cause.DRIFT_ALARM.value}": "alarm",
        f"{EventName.CLEARED.value}: {Cause.DRIFT_ALARM.value}": "alarm over",
        Mode.ARMED.value: "armed",
    }
    return [short for one in said for text, short in known.items() if one.startswith(text)]


@contextmanager
def quota(pid: int, share: float) -> Iterator[None]:
    """The kernel's, where this user may set one."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(by_the_kernel(pid, share))
        except NoQuotaError:
            stack.enter_context(by_signals(pid, share))
        yield


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_quota_disarms_the_model_delays_no_frame_and_only_a_proof_arms_it_again(board: Board, tmp_path: Path) -> None:
    with (
        motors() as controller,
        Guard.start(
            board.config.file,
            profile=board.profile,
            port=controller.port,
            state_directory=tmp_path,
            worker=command(board.config, board.profile),
        ) as guard,
    ):
        driver = Driver(guard, board)
        driver.drive_until(armed, cycles=200)
        begun_ns, worker = CLOCK.now_ns(), guard.status().worker_pid
        assert worker is not None
        spent_ns = cpu_time_ns(worker)
        healthy = driver.drive(20)
        share = ((cpu_time_ns(worker) - spent_ns) / len(healthy) - TICK_NS) / board.slow_ns
        assert share > 0
        driven_m = travelled_m(controller)
        with quota(worker, share):
            driver.drive_until(alarmed, cycles=100)
            disarmed = driver.drive(10)
            stands = controller.where()
        proof = driver.drive_until(armed, cycles=10 * REPROOF)
        still_m = travelled_m(controller)
        again = driver.drive(20)
        at_last_m = travelled_m(controller)
        last, report = guard.status(), controller.report(since_ns=begun_ns)
    assert Source.MODEL in sources(healthy)
    assert driven_m > 0
    assert sources(disarmed) == {Source.SAFE}
    assert all(Cause.DRIFT_ALARM in one.decision.causes for one in disarmed)
    assert stands.axes["linear"] == 0
    assert still_m == pytest.approx(stands.travel["linear"], abs=0.05), "so much it may have gone since it was armed"
    shadows = [one for one in proof if one.decision.source is Source.SAFE]
    assert shadows[: len(proof) - 1] == proof[:-1], "only the last may be a decision behind the arming"
    doubted = [one for one in shadows if Cause.DRIFT_ALARM in one.decision.causes]
    in_a_row = list(itertools.takewhile(lambda one: took_ns(one) <= disarming_ns(one, board), reversed(doubted)))
    assert len(in_a_row) >= REPROOF - 1, "the last of the proof ends the alarm; a late one behind it, only arming"
    assert Source.MODEL in sources(again)
    assert at_last_m > still_m
    assert (last.worker_pid, last.counters["worker_starts"]) == (worker, 1), "slow, not gone"

    kept_waiting_ns = report.latest_step_ns + last.lateness_max_ns
    assert_none_late(driver.records[:-1], report, since_ns=begun_ns, kept_waiting_ns=kept_waiting_ns)
    story = events_of(tmp_path, since_ns=begun_ns)
    assert story.index("margin") < story.index("alarm") < story.index("alarm over")
    assert "armed" not in story[story.index("alarm") : story.index("alarm over")]
    assert "armed" in story[story.index("alarm over") :]


@pytest.mark.parametrize("way", [by_the_kernel, by_signals])
def test_either_way_a_process_gets_little_more_than_its_share(way: Quota) -> None:
    """Three times it would be much more than a late look at what was spent can explain; without, it gets ten times."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with way(spinning.pid, 0.1):
            before_ns, spent_ns = CLOCK.now_ns(), cpu_time_ns(spinning.pid)
            CLOCK.sleep_until_ns(before_ns + NS_PER_S)
            spent_ns, took_ns = cpu_time_ns(spinning.pid) - spent_ns, CLOCK.now_ns() - before_ns
    except NoQuotaError as error:
        pytest.skip(str(error))
    finally:
        spinning.kill()
        spinning.wait()
    assert spent_ns <= 0.3 * took_ns
