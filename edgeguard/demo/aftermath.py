"""What a fault did to the motion: how long until the robot stood, how far it went, who stopped it. Pure.

Read from the motion that the motor controller's simulator reports every 10 ms, and from its own list of stops: the
guard's word plays no part in it. Monotonic nanoseconds in, milliseconds and metres out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.link.controller_log import Stop, StopCause
from edgeguard.link.simulator import Motion

STANDING_M_S = 0.005

_OWN_STOPS = {
    StopCause.LINK_TIMEOUT: "the motor controller's link time-out",
    StopCause.LIFE: "the motor controller, because the command's life was over",
    StopCause.SESSION: "the motor controller, because of a new session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """``stopped_ms`` is ``None`` when the robot never stood; ``distance_m`` is its path until then, or to the end."""

    stopped_ms: float | None
    distance_m: float
    slowest_m_s: float
    stopped_by: str


def aftermath(
    motions: Sequence[Motion], *, since_ns: int, until_ns: int | None = None, stops: Sequence[Stop]
) -> Aftermath:
    """From ``since_ns`` until the robot first stands, or until the fault is over (``until_ns``)."""
    later = [motion for motion in motions if since_ns <= motion.t_ns and (until_ns is None or motion.t_ns <= until_ns)]
    distance_m, slowest_m_s = 0.0, min((abs(motion.axes["linear"]) for motion in later), default=0.0)
    stood_ns: int | None = None
    for before, after in pairwise(later):
        if abs(before.axes["linear"]) < STANDING_M_S:
            stood_ns = before.t_ns
            break
        dt_s = (after.t_ns - before.t_ns) / NS_PER_S
        distance_m += abs(before.axes["linear"] + after.axes["linear"]) / 2 * dt_s
    return Aftermath(
        stopped_ms=None if stood_ns is None else ms_from_ns(stood_ns - since_ns),
        distance_m=distance_m,
        slowest_m_s=slowest_m_s,
        stopped_by=_who(stops, since_ns=since_ns, until_ns=stood_ns),
    )


def _who(stops: Sequence[Stop], *, since_ns: int, until_ns: int | None) -> str:
    """The motor controller, if it stopped by itself before the robot stood; else whoever commanded it: the guard."""
    own = [
        stop
        for stop in stops
        if stop.cause in _OWN_STOPS and since_ns <= stop.began_ns and (until_ns is None or stop.began_ns <= until_ns)
    ]
    return _OWN_STOPS[own[0].cause] if own else "the guard"
