"""Somebody who watches the robot and tells it, in ordinary words, where to go next. Pure and seeded.

The operator has a route in mind, looks at the robot once a period, and speaks when something else has to be done, or
says it in other words when nothing has come of it. Words stand until the next ones; some are meant for somebody else.
The model's adapter was trained on none of the phrases. Metres, radians, monotonic nanoseconds; it knows nothing of the
model or the guard.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.demo.world import Pose
from edgeguard.types import Value


class Wish(Enum):
    """What the operator wants: the move that would be right, and the least speed of it in metres per second."""

    FAST = ("forward", 0.4)
    FORWARD = ("forward", 0.0)
    LEFT = ("left", 0.0)
    RIGHT = ("right", 0.0)
    BACK = ("back", 0.0)
    WAIT = ("stop", 0.0)
    TALK = ("none", 0.0)

    def met_by(self, answer: Mapping[str, Value]) -> bool:
        """Whether an answer of the model is what was meant."""
        move, least = self.value
        speed = answer.get("speed")
        return answer.get("move") == move and isinstance(speed, (float, Decimal)) and float(speed) >= least

    def seen_in(self, *, linear_m_s: float, angular_rad_s: float) -> bool:
        """Whether the robot does it."""
        match self:
            case Wish.LEFT:
                return angular_rad_s > _SEEN
            case Wish.RIGHT:
                return angular_rad_s < -_SEEN
            case Wish.BACK:
                return linear_m_s < -_SEEN
            case Wish.WAIT | Wish.TALK:
                return abs(linear_m_s) < _SEEN and abs(angular_rad_s) < _SEEN
        return linear_m_s > _SEEN


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """What was said, and what was meant."""

    text: str
    wish: Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Waypoint:
    """A place on the route; ``wait``: there the operator lets the robot stand, or talks to somebody, for a moment."""

    x: float
    y: float
    wait: bool = False


PHRASES: Mapping[Wish, Sequence[str]] = {
    Wish.FAST: ("full speed ahead", "go forward quickly", "forward at full speed"),
    Wish.FORWARD: ("drive ahead", "move on", "walk straight on", "continue forward", "advance"),
    Wish.LEFT: ("take a left", "turn to the left", "now left", "a left, please", "make a left"),
    Wish.RIGHT: ("take a right", "turn to the right", "now right", "a right, please", "make a right"),
    Wish.BACK: ("step back", "move back a bit", "back away"),
    Wish.WAIT: ("stand still", "do not move", "hold still", "stay put"),
    Wish.TALK: ("what is for lunch today?", "did you see the game last night?", "oh, hello, how have you been?"),
}

ROUTE: Sequence[Waypoint] = (
    Waypoint(x=0.9, y=2.0),
    Waypoint(x=3.7, y=2.0),  # through the first doorway
    Waypoint(x=3.7, y=2.6, wait=True),
    Waypoint(x=6.2, y=2.6),  # through the second
    Waypoint(x=6.2, y=0.5, wait=True),
    Waypoint(x=6.2, y=2.9),
    Waypoint(x=3.7, y=2.6),
    Waypoint(x=3.7, y=0.5),
    Waypoint(x=3.7, y=2.3, wait=True),
    Waypoint(x=0.9, y=2.0),
    Waypoint(x=0.9, y=0.9, wait=True),
)

_SEEN = 0.05
"""Metres or radians per second that a person takes for motion."""

_ARRIVED_M = 0.35
_FAST_FROM_M = 1.4
_BACK_WITHIN_M = 1.7
_BEHIND_RAD = 2.6
"""What is almost straight behind and not far is reached by going back."""

_OFF_RAD = 0.3
"""Off by more than this, the robot has to turn: at a doorway 1.3 m away it would pass 0.4 m beside the middle."""

_AIMED_RAD = 0.1

_REACTION_NS = 350 * NS_PER_MS
"""From the word to the motion: half a period until the next observation, a deadline, and some of the ramp."""

_BREATH_NS = 400 * NS_PER_MS
_PATIENCE_NS = 2_000 * NS_PER_MS
_WAIT_NS = 1_200 * NS_PER_MS


class Operator:
    """Walks the robot along ``route``, over and over. ``said`` stands until the next words."""

    def __init__(self, *, seed: int, route: Sequence[Waypoint] = ROUTE) -> None:
        self._random = random.Random(seed)
        self._route = tuple(route)
        self._next = 0
        self._fresh: dict[Wish, list[str]] = {wish: [] for wish in Wish}
        self._spoke_ns = 0
        self._busy_until_ns = 0
        self._obeyed_ns = 0
        self.said = Utterance(text=self._words(Wish.WAIT), wish=Wish.WAIT)
        self.reached = 0

    def watch(self, pose: Pose, *, linear_m_s: float, angular_rad_s: float, now_ns: int) -> Utterance:
        """Look at the robot, say what has to be said, and return the words that stand."""
        if self.said.wish.seen_in(linear_m_s=linear_m_s, angular_rad_s=angular_rad_s):
            self._obeyed_ns = now_ns
        if now_ns < self._busy_until_ns:
            return self.said
        target = self._route[self._next]
        if pose.distance_to(target.x, target.y) < _ARRIVED_M:
            self._next, self.reached = (self._next + 1) % len(self._route), self.reached + 1
            if target.wait:
                wish = self._random.choice((Wish.WAIT, Wish.TALK))
                self.say(self._utter(wish), now_ns=now_ns, takes_ns=_WAIT_NS)
                return self.said
        wish = self._wish(pose, angular_rad_s=angular_rad_s)
        ignored = now_ns - max(self._obeyed_ns, self._spoke_ns) > _PATIENCE_NS
        if (wish is not self.said.wish and now_ns - self._spoke_ns >= _BREATH_NS) or ignored:
            self.say(self._utter(wish), now_ns=now_ns)
        return self.said

    def say(self, utterance: Utterance, *, now_ns: int, takes_ns: int = 0) -> None:
        """Say something, perhaps nothing that helps; it takes that long before anything else can be said."""
        self.said, self._spoke_ns, self._busy_until_ns = utterance, now_ns, now_ns + takes_ns

    def _wish(self, pose: Pose, *, angular_rad_s: float) -> Wish:
        target = self._route[self._next]
        bearing, distance_m = pose.bearing_to(target.x, target.y), pose.distance_to(target.x, target.y)
        if self.said.wish in (Wish.LEFT, Wish.RIGHT):
            # By the time that it hears the next words it will have turned on.
            ahead = bearing - angular_rad_s * _REACTION_NS / NS_PER_S
            turn_on = abs(ahead) > _AIMED_RAD and math.copysign(1, ahead) == math.copysign(1, bearing)
        elif abs(bearing) > _BEHIND_RAD and distance_m < _BACK_WITHIN_M:
            return Wish.BACK
        else:
            turn_on = abs(bearing) > _OFF_RAD
        if turn_on:
            return Wish.LEFT if bearing > 0 else Wish.RIGHT
        return Wish.FAST if distance_m > _FAST_FROM_M else Wish.FORWARD

    def _utter(self, wish: Wish) -> Utterance:
        return Utterance(text=self._words(wish), wish=wish)

    def _words(self, wish: Wish) -> str:
        """All phrases of a wish in random order, before any is heard again."""
        if not self._fresh[wish]:
            self._fresh[wish] = self._random.sample(PHRASES[wish], len(PHRASES[wish]))
        return self._fresh[wish].pop()
