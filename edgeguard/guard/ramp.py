"""Motion of one axis from one set-point to the next: a stop with limited deceleration and jerk, and following a target.

Pure arithmetic on distances from the safe value. Seconds; rates per second, jerk per second squared. A stop is the
quickest that keeps ``|deceleration| ≤ limit`` and its change within ``jerk``, and ends with both at zero: at each step
the deceleration is the largest from which a smooth end is still possible, ``d ≥ a²/(2·jerk)`` for a remaining distance
``d`` (the time-optimal double integrator under a jerk limit, solved for the end of a step; any step length will do).
"""

from __future__ import annotations

import math


def brake(distance: float, decel: float, *, limit: float, jerk: float, dt_s: float) -> tuple[float, float]:
    """What is left of ``distance`` (≥ 0) from the safe value after ``dt_s``, and the deceleration (≥ 0) by then."""
    if math.isinf(jerk):
        return max(0.0, distance - limit * dt_s), 0.0
    smooth_end = jerk * (math.sqrt(dt_s**2 / 4 + 2 * max(0.0, distance - decel * dt_s / 2) / jerk) - dt_s / 2)
    wanted = min(limit, smooth_end)
    after = max(0.0, decel - jerk * dt_s, min(wanted, decel + jerk * dt_s))
    left = distance - (decel + after) / 2 * dt_s
    return (left, after) if left > 0 else (0.0, 0.0)


def braking_time(speed: float, *, limit: float, jerk: float) -> float:
    """How long the stop from a steady ``speed`` takes: deceleration rises, holds and falls (an S-curve)."""
    if math.isinf(jerk):
        return speed / limit
    return speed / limit + limit / jerk if speed * jerk >= limit**2 else 2 * math.sqrt(speed / jerk)


def braking_distance(speed: float, *, limit: float, jerk: float) -> float:
    """How far it goes meanwhile: the S-curve is symmetric about half of the speed."""
    return speed * braking_time(speed, limit=limit, jerk=jerk) / 2


def follow(value: float, target: float, *, safe: float | None, up: float, down: float, dt_s: float) -> float:
    """The next set-point on the way to ``target``: away from the safe value at ``up``, towards it at ``down``.

    Without a safe value, ``up`` and ``down`` are meant literally.
    """
    if safe is None:
        return min(target, value + up * dt_s) if target > value else max(target, value - down * dt_s)
    now, goal = value - safe, target - safe
    if now < 0:
        return safe - _outward(-now, -goal, up=up, down=down, dt_s=dt_s)
    return safe + _outward(now, goal, up=up, down=down, dt_s=dt_s)


def _outward(now: float, goal: float, *, up: float, down: float, dt_s: float) -> float:
    """``follow`` for a value on the positive side of a safe value at 0; across 0 the rest of the time counts."""
    if goal >= now:
        return min(goal, now + up * dt_s)
    nearest = max(goal, 0.0)
    reach_s = (now - nearest) / down
    if reach_s >= dt_s:
        return now - down * dt_s
    return nearest if goal >= 0 else max(goal, -up * (dt_s - reach_s))


def start_of(commanded: float, measured: float | None, *, safe: float | None) -> float:
    """Where a stop or a re-engagement starts from: what is measured, else what was commanded last.

    Never beyond the command, so that no start lets the speed rise, and never beyond the safe value, so that no sensor
    turns a stop into a reverse. An axis that holds keeps its command: a gripper commanded shut on a thing measures the
    thing, and must not let go of it.
    """
    if measured is None or safe is None:
        return commanded
    return min(max(measured, min(safe, commanded)), max(safe, commanded))
