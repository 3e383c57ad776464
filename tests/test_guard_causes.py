"""The table of causes, said a second time: who changes a row changes what the robot does, and has to say so twice."""

from __future__ import annotations

import pytest

from edgeguard.guard.causes import TABLE, Clear
from edgeguard.guard.events import EventName
from edgeguard.guard.ledger import Ledger
from edgeguard.types import Cause, Event, Grade

REVIEWED = {
    (Grade.COMFORTABLE, Clear.FITTED): {Cause.PREDICTED_MISS, Cause.INFEASIBLE},
    (Grade.COMFORTABLE, Clear.ON_TIME): {
        Cause.MISS,
        Cause.INVALID_ANSWER,
        Cause.INCOMPLETE_ANSWER,
        Cause.OUT_OF_ENVELOPE,
        Cause.LOW_CONFIDENCE,
        Cause.GUARD_OVERRUN,
    },
    (Grade.COMFORTABLE, Clear.OBSERVATION): {Cause.STALE_OBSERVATION, Cause.BAD_STAMP, Cause.MISSING_FIELD},
    (Grade.COMFORTABLE, Clear.CONDITION): {
        Cause.NO_OBSERVATION,
        Cause.RULE,
        Cause.WORKER_DEAD,
        Cause.WORKER_HUNG,
        Cause.WORKER_WARMING,
        Cause.WORKER_UNAVAILABLE,
        Cause.PROFILE_STALE,
        Cause.LEVEL_UNCALIBRATED,
        Cause.DRIFT_ALARM,
        Cause.TEMPERATURE_CRITICAL,
    },
    (Grade.COMFORTABLE, Clear.PROVEN): {Cause.UNPROVEN},
    (Grade.COMFORTABLE, Clear.RESTART): {Cause.CONFIGURATION_RELOAD, Cause.SHUTDOWN},
    (Grade.EMERGENCY, Clear.PROVEN_AND_DWELL): {Cause.MISSES_ACCUMULATED},
    (Grade.EMERGENCY, Clear.CONDITION): {Cause.LINK_LOST, Cause.NO_ECHO, Cause.SESSION_MISMATCH},
    (Grade.EMERGENCY, Clear.OPERATOR): {Cause.CLOCK_JUMP, Cause.OPERATOR_STOP, Cause.LATCH_FILE},
    (Grade.TERMINAL, Clear.OPERATOR): {Cause.CONTROLLER_FAULT, Cause.CONTROLLER_ESTOP},
}
DRAINING = {Cause.MISS, Cause.INVALID_ANSWER, Cause.INCOMPLETE_ANSWER, Cause.OUT_OF_ENVELOPE, Cause.LOW_CONFIDENCE}


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_its_row(cause):
    row = TABLE[cause]
    assert cause in REVIEWED[row.grade, row.clear]
    assert row.drains is (cause in DRAINING)
    assert row.remedy


def test_a_cause_that_holds_with_another_grade_is_cleared_and_raised_anew():
    events: list[Event] = []
    slow = Ledger({}, now_ns=1, events=events)
    slow.hold(Cause.RULE, "slow down")
    slow.reconcile()
    halt = Ledger(slow.standing, now_ns=2, events=events)
    halt.hold(Cause.RULE, "halt", grade=Grade.EMERGENCY)
    halt.reconcile()
    assert [one.name for one in events] == [EventName.RAISED, EventName.CLEARED, EventName.RAISED]
    assert halt.standing[Cause.RULE].since_ns == 2
