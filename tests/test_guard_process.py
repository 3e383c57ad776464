"""The guard in its own process, on a real pty with a real motor controller, while everything around it fails."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, wait_for
from robot import AHEAD, Robot, drive, drive_until, motors

from edgeguard import Guard
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.errors import AlreadyRunningError, ConfigError, GuardGoneError, LinkError, ObservationError, ProfileError
from edgeguard.types import Action, Cause, CycleRecord, Finish, Mode, Source

LATE_NS, HUNG_NS = 200 * NS_PER_MS, 10 * NS_PER_S
"""A machine that sets the guard aside makes some of its decisions later than the first, and none later than the second;
to wait for somebody would make most of them late. Punctuality is the demo's to measure."""


@pytest.fixture
def robot(tmp_path) -> Iterator[Robot]:
    with motors() as simulator:
        yield Robot(tmp_path, simulator)


def deadline_ns(record: CycleRecord) -> int:
    assert record.observation is not None
    return record.observation.captured_ns + 60 * NS_PER_MS


def assert_nobody_was_waited_for(late_ns: Iterable[int]) -> None:
    ordered = sorted(late_ns)
    assert ordered[len(ordered) // 2] < LATE_NS
    assert ordered[-1] < HUNG_NS


def assert_no_decision_waited(records: list[CycleRecord]) -> None:
    assert_nobody_was_waited_for(
        max(record.decision.decided_ns, record.on_wire_ns or 0) - deadline_ns(record) for record in records
    )


def rearm(guard: Guard) -> None:
    """Refused while a cause holds, and a machine that sets the guard aside is one: the operator tries again."""

    def armed(_: CycleRecord) -> bool:
        guard.rearm()
        return guard.status().mode is Mode.ARMED

    drive_until(guard, armed, "armed again")


def test_the_model_drives_the_robot_once_it_is_proven(robot):
    with robot.guarded() as guard:
        records = drive_until(guard, lambda _: robot.motors.where().axes["linear"] == pytest.approx(0.4), "full speed")
        records += drive_until(guard, lambda record: record.decision.source is Source.MODEL, "the model's decision")
    assert all(record.answer.finish is Finish.COMPLETE for record in records if record.decision.source is Source.MODEL)
    assert_no_decision_waited(records)


def test_before_it_is_proven_only_stops_leave(robot):
    with robot.guarded() as guard:
        drive_until(guard, lambda _: robot.motors.where().axes["linear"] > 0, "it moves")
    before = list(itertools.takewhile(lambda one: one.action is not Action.MOVE, robot.motors.report().received))
    assert before
    assert all(receipt.axes["linear"] == 0.0 for receipt in before)


FAULTS_OF_THE_WORKER = {
    "stopped": lambda pid: os.kill(pid, signal.SIGSTOP),
    "killed": lambda pid: os.kill(pid, signal.SIGKILL),
}


@pytest.mark.parametrize("fault", FAULTS_OF_THE_WORKER)
def test_with_the_worker_gone_the_safe_command_leaves_in_every_cycle(robot, fault):
    with robot.guarded() as guard:
        robot.behave(start="hang")  # nor does its replacement ever become ready
        FAULTS_OF_THE_WORKER[fault](guard.status().worker_pid)
        records = drive(guard, 200)
        wait_for(lambda: robot.motors.where().axes["linear"] == 0.0, "it stands")
    assert {record.decision.source for record in records[1:]} == {Source.SAFE}
    assert all(record.on_wire_ns is not None for record in records if Cause.LINK_LOST not in record.decision.causes), (
        "in every cycle, but for those of a link that a pause has torn"
    )
    assert_no_decision_waited(records)


def test_with_an_endless_pass_the_safe_command_leaves_and_the_worker_is_replaced(robot):
    with robot.guarded() as guard:
        first = guard.status().worker_pid
        robot.behave(faults={"*": "spin"})
        records = drive(guard, 30)
        robot.behave()
        status = guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
    assert {record.decision.source for record in records[1:]} == {Source.SAFE}
    assert status.worker_pid != first
    assert_no_decision_waited(records)


def test_a_caller_that_never_reads_delays_no_frame(robot):
    with robot.guarded() as guard:
        before_ns = time.monotonic_ns()
        for _ in range(60):
            guard.submit(AHEAD)
            time.sleep(0.03)
        received = [one.received_ns for one in robot.motors.report(since_ns=before_ns).received]
    assert len(received) > 100
    assert_nobody_was_waited_for(after - before for before, after in itertools.pairwise(received))


def test_a_motor_controller_that_never_reads_delays_no_decision(robot):
    with robot.guarded() as guard:
        robot.motors.freeze()
        records = drive(guard, 50)
    assert_no_decision_waited(records)
    assert {record.decision.source for record in records[-20:]} == {Source.SAFE}


def test_a_late_answer_is_thrown_away_and_counted(robot):
    with robot.guarded() as guard:
        robot.behave(faults={"*": "late"})
        records = drive_until(guard, lambda record: Cause.MISS in record.decision.causes, "a miss")
        records += drive_until(guard, lambda _: guard.status().counters["late"], "a late answer is counted")
        robot.behave()
        guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
    assert {record.decision.source for record in records[1:]} == {Source.SAFE}


@pytest.mark.parametrize(
    "fault", ["invalid", "missing", "foreign", "garbage", "long", "hangup", "twice", "error", "deadline"]
)
def test_what_the_worker_says_wrongly_is_never_applied_and_never_fatal(robot, fault):
    with robot.guarded() as guard:
        robot.behave(faults={"*": fault})
        first, *records = drive(guard, 6)
        if fault in ("garbage", "twice"):  # it harms nobody
            records += drive_until(guard, lambda record: record.decision.source is Source.MODEL, "the model drives on")
        else:
            assert {record.decision.source for record in records} == {Source.SAFE}
        robot.behave()
        guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
    assert_no_decision_waited([first, *records])


BAD_OBSERVATIONS = {
    "a missing field": ({"said": "go"}, Cause.MISSING_FIELD),
    "a number that is none": ({"said": "go", "front_m": math.nan}, Cause.MISSING_FIELD),
    "an infinite number": ({"said": "go", "front_m": math.inf}, Cause.MISSING_FIELD),
    "another kind": ({"said": 5, "front_m": 2.0}, Cause.MISSING_FIELD),
}


@pytest.mark.parametrize("name", BAD_OBSERVATIONS)
def test_an_observation_that_cannot_be_used_gets_a_safe_decision(robot, name):
    fields, cause = BAD_OBSERVATIONS[name]
    with robot.guarded() as guard:
        record = guard.decide(fields)
    assert record.decision.source is Source.SAFE
    assert cause in record.decision.causes


def test_a_stale_observation_is_not_asked_about(robot):
    with robot.guarded() as guard:
        record = guard.decide(AHEAD, age_ms=50)
    assert record.decision.source is Source.SAFE
    assert Cause.STALE_OBSERVATION in record.decision.causes


def test_a_stamp_of_another_clock_is_refused_at_once(robot):
    with robot.guarded(armed=False) as guard, pytest.raises(ObservationError, match="another clock"):
        guard.submit(AHEAD, captured_ns=time.time_ns())


def test_the_operators_stop_latches_until_the_operator_rearms(robot):
    with robot.guarded() as guard:
        drive(guard, 5)
        guard.stop()
        records = drive(guard, 5)
        assert guard.status().mode is Mode.LATCHED
        wait_for((robot.folder / "state" / "latched").exists, "the latch outlives the guard")
        rearm(guard)
        wait_for(lambda: not (robot.folder / "state" / "latched").exists(), "it is gone")
    assert {record.decision.source for record in records} == {Source.SAFE}


def test_the_operators_word_stops_the_robot_before_the_model_sees_it(robot):
    with robot.guarded() as guard:
        record = guard.decide({**AHEAD, "said": "Stop!"})
        assert record.decision.source is Source.SAFE
        assert Cause.OPERATOR_STOP in record.decision.causes
        assert guard.status().mode is Mode.LATCHED


def test_the_latch_outlives_the_guard(robot):
    with robot.guarded() as guard:
        guard.stop()
        drive(guard, 2)
    with robot.guarded(armed=False) as guard:
        assert guard.status().mode is Mode.LATCHED


def test_an_obstacle_takes_over_while_the_model_would_go_on(robot):
    with robot.guarded() as guard:
        drive(guard, 5)
        record = guard.decide({**AHEAD, "front_m": 0.2})
    assert record.decision.source is Source.SAFE
    assert record.decision.rule == "obstacle"
    assert Cause.RULE in record.decision.causes


def test_when_the_guard_is_killed_the_motor_controller_stops_by_itself(robot):
    with robot.guarded() as guard:
        drive_until(guard, lambda _: robot.motors.where().axes["linear"] == pytest.approx(0.4), "full speed")
        os.kill(guard.pid, signal.SIGKILL)
        wait_for(lambda: robot.motors.where().axes["linear"] == 0.0, "the robot stands")
        report = robot.motors.report()
        with pytest.raises(GuardGoneError, match="ended with status -9"):
            guard.decide(AHEAD)
    if report.received[-1].action is Action.MOVE:  # else it was set aside just then, and was stopping the robot itself
        assert report.stops[-1].cause in ("link_timeout", "life")
        assert report.stops[-1].began_ns > report.received[-1].received_ns


def test_when_the_caller_dies_the_guard_ends_and_the_robot_stops(robot):
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from robot import *; from pathlib import Path\n"
        "robot = Robot.__new__(Robot); robot.folder = Path(sys.argv[3])\n"
        "robot.config = robot.folder / 'robot.toml'; robot.profile = robot.folder / 'robot.profile.json'\n"
        "with robot.guarded(port=sys.argv[4]) as guard:\n"
        "    drive(guard, 5); print(guard.pid, flush=True); drive(guard, 10_000)\n"
    )
    tests = Path(__file__).parent
    argv = [sys.executable, "-c", code, str(tests), str(tests.parent), str(robot.folder), robot.motors.port]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        guard_pid = int(caller.stdout.readline())
        caller.kill()
    wait_for(lambda: not Path(f"/proc/{guard_pid}").exists(), "the guard ends")
    wait_for(lambda: robot.motors.where().axes["linear"] == 0.0, "the robot stands")


def test_a_cut_link_is_an_intervention_and_comes_back_by_a_stop(robot):
    with robot.guarded() as guard:
        drive(guard, 5)
        robot.motors.cut()
        cut = drive(guard, 10)
        restored_ns = time.monotonic_ns()
        robot.motors.restore()
        guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
    assert {record.decision.source for record in cut[1:]} == {Source.SAFE}
    assert Cause.LINK_LOST in cut[-1].decision.causes
    first = robot.motors.report(since_ns=restored_ns).received[0]
    assert first.action is not Action.MOVE


def test_a_second_guard_on_the_same_state_directory_is_refused(robot):
    with robot.guarded(armed=False) as guard, pytest.raises(AlreadyRunningError, match=f"process {guard.pid}"):
        robot.guarded(armed=False).__enter__()


def test_a_port_that_is_in_use_or_missing_is_named(robot, tmp_path):
    with pytest.raises(LinkError, match="nowhere"), robot.guarded(port="/dev/nowhere"):
        pass
    with robot.guarded(armed=False):
        other = tmp_path / "other"
        with pytest.raises(LinkError, match="in use"):
            Guard.start(
                robot.config, profile=robot.profile, port=robot.motors.port, state_directory=other, worker=robot.worker
            )


def test_a_missing_profile_names_the_command_that_makes_one(robot):
    robot.profile.unlink()
    with pytest.raises(ProfileError, match="edgeguard calibrate"), robot.guarded():
        pass


def test_a_profile_that_was_measured_at_another_period_is_refused(robot):
    robot.config.write_text(robot.config.read_text().replace("period_ms = 60", "period_ms = 80"))
    with pytest.raises(ProfileError, match="a period of 60 ms, and the configuration has 80 ms"), robot.guarded():
        pass


def test_a_profile_of_another_machine_never_arms_and_says_the_difference(robot):
    robot.write_profile(model="another")
    with robot.guarded(armed=False) as guard:
        drive_until(guard, lambda _: Cause.PROFILE_STALE in guard.status().causes, "the worker has said what it is")
        drive(guard, 10)
        status = guard.status()
    assert status.mode is not Mode.ARMED
    assert Cause.PROFILE_STALE in status.causes


def test_a_configuration_that_is_wrong_is_refused_with_every_problem(robot):
    robot.config.write_text(robot.config.read_text().replace('"stop"] } }', '"halt"] } }'))
    with pytest.raises(ConfigError) as caught, robot.guarded():
        pass
    assert len(caught.value.problems) == 2  # no number for "halt", and "stop" is nothing that it may say


def test_a_machine_that_slows_down_disarms_the_model_and_only_a_proof_arms_it_again(robot):
    """As a quota of the processor does: every answer in time, and each longer than the bound and its margin, which are
    more than a busy machine adds."""
    robot.config.write_text(robot.config.read_text().replace("deadline_ms = 60", "deadline_ms = 1500"))
    robot.write_profile(bound_ms=200, percentile=0.9)
    robot.behave(bound_ms=200)
    with robot.guarded() as guard:
        robot.behave(bound_ms=200, slower=80.0)  # some 350 ms, and the bound with its margin is 300
        slow = drive_until(guard, lambda record: Cause.DRIFT_ALARM in record.decision.causes, "the alarm")
        alarmed = guard.status()
        robot.behave(bound_ms=200)
        proof = drive(guard, 40)
        status = guard.wait_armed(timeout_s=PATIENCE_S, observe_with=AHEAD)
    assert (alarmed.margin, alarmed.bound_ns) == (1.5, 300 * NS_PER_MS)
    assert slow[-1].decision.source is Source.SAFE
    assert {record.decision.source for record in proof} == {Source.SAFE}
    assert status.mode is Mode.ARMED
