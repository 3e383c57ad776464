"""Ramps: within their limits at every step, whatever the step; and as long and as far as the formulas say."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.guard.ramp import brake, braking_distance, braking_time, follow, start_of

speeds = st.floats(0, 10)
limits = st.floats(0.1, 20)
jerks = st.one_of(st.just(math.inf), st.floats(0.5, 200))
steps = st.lists(st.floats(0.001, 0.02), min_size=1, max_size=30)


def run(speed, *, limit, jerk, dt_s):
    """Speed and deceleration at each step of a stop."""
    left, decel, track = speed, 0.0, [(speed, 0.0)]
    while left > 0:
        left, decel = brake(left, decel, limit=limit, jerk=jerk, dt_s=dt_s)
        track.append((left, decel))
        assert len(track) < 200_000
    return track


@given(speed=speeds, limit=limits, jerk=jerks, steps=steps)
def test_a_stop_never_speeds_up_and_keeps_its_limits_whatever_the_steps(speed, limit, jerk, steps):
    left, decel = speed, 0.0
    for dt_s in steps:
        before, decel_before = left, decel
        left, decel = brake(left, decel, limit=limit, jerk=jerk, dt_s=dt_s)
        assert 0 <= left <= before
        assert before - left <= limit * dt_s + 1e-9
        assert 0 <= decel <= limit + 1e-9
        if not math.isinf(jerk):
            assert decel - decel_before <= jerk * dt_s + 1e-9
            assert left == 0 or decel_before - decel <= jerk * dt_s + 1e-9
            assert left >= decel**2 / (2 * jerk) - 1e-6  # a smooth end stays possible


@given(speed=st.floats(0.05, 5), limit=st.floats(0.5, 5), jerk=st.one_of(st.just(math.inf), st.floats(2, 50)))
def test_time_and_distance_are_those_of_the_closed_form(speed, limit, jerk):
    dt_s = 0.002
    track = run(speed, limit=limit, jerk=jerk, dt_s=dt_s)
    time_s = (len(track) - 1) * dt_s
    distance = sum((sooner[0] + later[0]) / 2 * dt_s for sooner, later in pairwise(track))
    assert distance == pytest.approx(braking_distance(speed, limit=limit, jerk=jerk), rel=0.02, abs=speed * dt_s)
    tail_s = 0 if math.isinf(jerk) else 10 * dt_s  # the discrete end creeps
    assert time_s == pytest.approx(braking_time(speed, limit=limit, jerk=jerk), rel=0.02, abs=2 * dt_s + tail_s)


def test_the_closed_form_of_a_known_stop():
    assert braking_time(2, limit=1, jerk=math.inf) == 2
    assert braking_distance(2, limit=1, jerk=math.inf) == 2
    assert braking_time(2, limit=1, jerk=2) == 2.5
    assert braking_distance(2, limit=1, jerk=2) == 2.5
    assert braking_time(0.5, limit=10, jerk=2) == 1.0  # the limit is never reached
    assert braking_distance(0, limit=1, jerk=1) == 0
    assert braking_time(3, limit=2, jerk=2) == 2.5  # the limit is reached: 3 * 2 is more than 2**2 and less than 2**3


def test_an_emergency_takes_over_a_comfortable_stop_with_its_own_jerk():
    left, decel = 1.0, 0.0
    for _ in range(10):
        left, decel = brake(left, decel, limit=1, jerk=10, dt_s=0.02)
    assert decel == pytest.approx(1.0)
    left, decel = brake(left, decel, limit=4, jerk=20, dt_s=0.02)
    assert decel == pytest.approx(1.4)


def test_a_comfortable_stop_takes_over_an_emergency_without_letting_go_at_once():
    _, decel = brake(1.0, 4.0, limit=1, jerk=20, dt_s=0.02)
    assert decel == pytest.approx(3.6)


@given(decel=st.floats(0, 3), change=st.floats(-1, 1), jerk=st.floats(2, 50), dt_s=st.floats(0.001, 0.02))
def test_at_its_end_a_stop_keeps_exactly_the_distance_that_a_smooth_end_needs(decel, change, jerk, dt_s):
    after = max(0.0, decel + change * jerk * dt_s)
    left = after**2 / (2 * jerk)
    step = brake(left + (decel + after) / 2 * dt_s, decel, limit=100, jerk=jerk, dt_s=dt_s)
    assert step == pytest.approx((left, after), abs=1e-6)


def test_what_stands_does_not_decelerate():
    assert brake(0.0, 1.0, limit=2.0, jerk=10.0, dt_s=0.0) == (0.0, 0.0)


class TestFollow:
    @given(
        value=st.floats(-5, 5),
        target=st.floats(-5, 5),
        safe=st.one_of(st.none(), st.floats(-2, 2)),
        up=st.floats(0.1, 5),
        down=st.floats(0.1, 5),
        dt_s=st.floats(0, 0.02),
    )
    def test_it_never_overshoots_and_never_exceeds_the_rates(self, *, value, target, safe, up, down, dt_s):
        after = follow(value, target, safe=safe, up=up, down=down, dt_s=dt_s)
        assert min(value, target) - 1e-9 <= after <= max(value, target) + 1e-9
        assert abs(after - value) <= max(up, down) * dt_s + 1e-9
        if safe is not None:
            assert abs(after - safe) - abs(value - safe) <= up * dt_s + 1e-9
            assert abs(value - safe) - abs(after - safe) <= down * dt_s + 1e-9

    @pytest.mark.parametrize(
        ("value", "target", "after"),
        [
            (0.0, 1.0, 0.1),  # away from the safe value: up
            (0.0, -1.0, -0.1),
            (1.0, 0.0, 0.5),  # towards it: down
            (-1.0, 0.0, -0.5),
            (0.05, 0.0, 0.0),
            (0.25, -1.0, -0.05),  # across it: half of the time down, the rest up
            (-0.25, 1.0, 0.05),
            (0.25, 0.2, 0.2),
            (0.5, 0.3, 0.3),
            (0.5, -1.0, 0.0),
        ],
    )
    def test_away_from_the_safe_value_and_towards_it_have_their_own_rates(self, value, target, after):
        assert follow(value, target, safe=0.0, up=1.0, down=5.0, dt_s=0.1) == pytest.approx(after)

    def test_an_axis_that_holds_takes_them_literally(self):
        assert follow(0.0, 1.0, safe=None, up=1.0, down=5.0, dt_s=0.1) == pytest.approx(0.1)
        assert follow(0.0, -1.0, safe=None, up=1.0, down=5.0, dt_s=0.1) == pytest.approx(-0.5)


class TestStart:
    def test_it_is_what_is_measured(self):
        assert start_of(0.5, 0.3, safe=0.0) == 0.3

    def test_else_what_was_commanded(self):
        assert start_of(0.5, None, safe=0.0) == 0.5

    def test_it_is_never_further_from_safety_than_the_command(self):
        assert start_of(0.5, 0.7, safe=0.0) == 0.5
        assert start_of(-0.5, -0.7, safe=0.0) == -0.5

    def test_it_is_never_on_the_other_side_of_it(self):
        assert start_of(0.5, -0.2, safe=0.0) == 0.0
        assert start_of(0.0, 0.3, safe=0.0) == 0.0

    def test_an_axis_that_holds_keeps_its_command(self):
        assert start_of(0.0, 0.03, safe=None) == 0.0
