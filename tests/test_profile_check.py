"""What a profile promises, in the guard's words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from robot import Robot

from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.budget import load_profile
from edgeguard.runtime.profile_check import LEAST_ALPHA, ProfileCheck, promise_of
from edgeguard.types import Cause, ThermalLevel

MS = 1_000_000


@pytest.fixture
def profile(tmp_path):
    return load_profile(Robot(tmp_path, motors=None).profile)


def at(profile, level, bound_ms, **changed):
    return replace(
        profile.bounds[0], **{"level": level, "bound_ns": bound_ms * MS, "score": 1.0, "percentile": 0.99, **changed}
    )


def test_a_worker_whose_graph_is_placed_otherwise_is_not_the_one_that_was_measured(tmp_path):
    robot = Robot(tmp_path, motors=None)
    measured = replace(load_profile(robot.profile), placement="npu, all of it")
    write_profile(measured, robot.profile)
    check = ProfileCheck(robot.profile, period_ns=measured.schedule.period_ns)
    identity = {key: value for key, value in measured.fingerprint.items() if key == "model"}
    ready = {"type": "ready", "identity": identity, "placement": "npu, all of it"}
    assert check.conditions(ready) == ()
    ((cause, why),) = check.conditions({**ready, "placement": "npu, and 2 Gather on CPUExecutionProvider"})
    assert cause is Cause.PROFILE_STALE
    assert why == "placement: npu, all of it -> npu, and 2 Gather on CPUExecutionProvider"


def test_every_level_that_was_reached_has_its_bound(profile):
    bounds = (at(profile, ThermalLevel.NOMINAL, 20), at(profile, ThermalLevel.HOT, 30))
    promise = promise_of(replace(profile, bounds=bounds, thermal="observed", margin=1.0))
    assert promise.bounds_ns == (20 * MS, 30 * MS)
    assert (promise.reached, promise.observed) == (ThermalLevel.HOT, True)


def test_the_margin_of_a_quick_calibration_is_in_them(profile):
    promise = promise_of(replace(profile, bounds=(at(profile, ThermalLevel.NOMINAL, 20),), margin=1.5))
    assert promise.bounds_ns[0] == 30 * MS


def test_it_is_as_cautious_as_the_weakest_of_them(profile):
    bounds = (
        at(profile, ThermalLevel.NOMINAL, 20, percentile=0.99, lag=2),
        at(profile, ThermalLevel.HOT, 30, percentile=0.95, lag=5, score=2.0),
    )
    promise = promise_of(replace(profile, bounds=bounds))
    assert (promise.alpha, promise.lag) == (pytest.approx(0.05), 5)


def test_no_profile_promises_for_certain(profile):
    promise = promise_of(replace(profile, bounds=(at(profile, ThermalLevel.NOMINAL, 20, percentile=1.0),)))
    assert promise.alpha == LEAST_ALPHA


def test_of_a_ladder_the_cheapest_rung_is_promised_and_every_rungs_caution(profile):
    """A miss is foreseen only where no rung fits."""
    bounds = (
        at(profile, ThermalLevel.NOMINAL, 40, rung="full", percentile=0.95, lag=5),
        at(profile, ThermalLevel.HOT, 60, rung="full"),
        at(profile, ThermalLevel.NOMINAL, 25, rung="short"),
    )
    promise = promise_of(replace(profile, bounds=bounds, thermal="observed", margin=1.0))
    assert promise.bounds_ns == (25 * MS, 60 * MS), "nothing is known of the short one on a hot board"
    assert (promise.alpha, promise.lag) == (pytest.approx(0.05), 5)


def test_bounds_of_drafts_alone_promise_what_they_have(profile):
    promise = promise_of(replace(profile, bounds=(at(profile, ThermalLevel.HOT, 25, drafted=True),), margin=1.0))
    assert promise.bounds_ns == (25 * MS, 25 * MS)
