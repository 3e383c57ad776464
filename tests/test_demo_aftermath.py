"""Time to stop, distance and who stopped it, from the motion alone."""

from __future__ import annotations

import pytest

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.demo.aftermath import aftermath
from edgeguard.demo.announcements import ended
from edgeguard.demo.summary import Outcome
from edgeguard.link.controller_log import Stop, StopCause
from edgeguard.link.simulator import Motion

STEP_NS = 10 * NS_PER_MS


def braking(*, from_m_s: float, decel: float, after_s: float, seconds: float = 4.0) -> list[Motion]:
    """Steady for ``after_s``, then braking to a stand."""
    return [
        Motion(
            t_ns=NS_PER_S + step * STEP_NS,
            axes={"linear": max(0.0, from_m_s - max(0.0, step / 100 - after_s) * decel), "angular": 0.0},
        )
        for step in range(round(seconds * 100))
    ]


def stop(cause: StopCause, *, after_ms: int) -> Stop:
    return Stop(began_ns=NS_PER_S + after_ms * NS_PER_MS, cause=cause, values={})


def test_time_and_distance_are_those_of_the_motion() -> None:
    after = aftermath(braking(from_m_s=0.5, decel=1.0, after_s=0.2), since_ns=NS_PER_S, stops=[])
    assert after.stopped_ms == pytest.approx(700, abs=10)
    assert after.distance_m == pytest.approx(0.5 * 0.2 + 0.5**2 / 2, abs=0.002)
    assert after.stopped_by == "the guard"


def test_what_slowed_down_but_never_stood_has_no_time_to_stop() -> None:
    motions = [
        Motion(t_ns=NS_PER_S + step * STEP_NS, axes={"linear": speed, "angular": 0.0})
        for step, speed in enumerate([0.5, 0.4, 0.3, 0.4, 0.5])
    ]
    after = aftermath(motions, since_ns=NS_PER_S, stops=[])
    assert (after.stopped_ms, after.slowest_m_s) == (None, 0.3)


def test_a_stand_after_the_recovery_is_another_story() -> None:
    motions = braking(from_m_s=0.5, decel=1.0, after_s=2.0)
    assert aftermath(motions, since_ns=NS_PER_S, until_ns=2 * NS_PER_S, stops=[]).stopped_ms is None


def test_nothing_reported_is_nothing_known() -> None:
    after = aftermath([], since_ns=NS_PER_S, stops=[])
    assert (after.stopped_ms, after.distance_m) == (None, 0.0)


@pytest.mark.parametrize(
    ("stops", "who"),
    [
        ([], "the guard"),
        ([stop(StopCause.COMMAND, after_ms=200)], "the guard"),
        ([stop(StopCause.LINK_TIMEOUT, after_ms=80)], "the motor controller's link time-out"),
        ([stop(StopCause.LIFE, after_ms=80)], "the motor controller, because the command's life was over"),
        ([stop(StopCause.LINK_TIMEOUT, after_ms=-500)], "the guard"),
        ([stop(StopCause.LINK_TIMEOUT, after_ms=3_000)], "the guard"),
    ],
)
def test_who_stopped_it_is_the_motor_controllers_word(stops: list[Stop], who: str) -> None:
    motions = braking(from_m_s=0.5, decel=1.0, after_s=0.1)
    assert aftermath(motions, since_ns=NS_PER_S, stops=stops).stopped_by == who


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            {"stopped_ms": 812.0, "why": "miss"},
            "▲ stopped after 0.81 s and 0.30 m, by the guard (miss). The model drives again after 6.0 s.",
        ),
        (
            {"stopped_ms": None, "slowest_m_s": 0.28, "why": "miss, the late answer was thrown away"},
            "▲ slowed down to 0.28 m/s, by the guard (miss, the late answer was thrown away). "
            "The model drives again after 6.0 s.",
        ),
        (
            {"stopped_ms": 280.0, "stopped_by": "the motor controller's link time-out", "fatal": True},
            "▲ stopped after 0.28 s and 0.30 m, by the motor controller's link time-out. "
            "Nobody is left to start it again.",
        ),
        ({"stopped_ms": None, "fatal": True}, "▲ It never stopped."),
        (
            {"stopped_ms": 812.0, "why": "miss", "recovered_s": None},
            "▲ stopped after 0.81 s and 0.30 m, by the guard (miss). The model never drove again.",
        ),
        ({"stopped_ms": 1900.0}, "▲ The answers were on time all the same."),
    ],
)
def test_a_fault_ends_with_one_line(keys: dict[str, object], text: str) -> None:
    outcome = {
        "name": "fault",
        "stopped_ms": None,
        "distance_m": 0.3,
        "slowest_m_s": 0.1,
        "stopped_by": "the guard",
        "why": "",
        "recovered_s": 6.0,
        "fatal": False,
    }
    assert ended(Outcome(**{**outcome, **keys})).plain == text
