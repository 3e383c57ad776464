"""Somebody who watches the robot and tells it, in ordinary words, where to go next. Pure and seeded.

The operator has a route in mind, looks at the robot once a period, and speaks when something else has to be done, or
says it in other words when nothing has come of it. Words stand until the next ones. None of the phrases is among the
few-shot examples of ``demo.toml``. Metres, radians, monotonic nanoseconds; it knows nothing of the model or the guard.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.demo.world import Pose


class Wish(Enum):
    """What the operator wants: the answer that would be right, ``None`` where any speed is."""

    FAST = ("forward", "fast")
    FORWARD = ("forward", None)
    LEFT = ("left", None)
    RIGHT = ("right", None)
    BACK = ("back", None)
    WAIT = ("stop", None)

    def met_by(self, answer: Mapping[str, object]) -> bool:
        """Whether an answer of the model is what was meant."""
        move, speed = self.value
        return answer.get("move") == move and speed in (None, answer.get("speed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """What was said, and what was meant."""

    text: str
    wish: Wish


PHRASES: Mapping[Wish, Sequence[str]] = {
    Wish.FAST: ("full speed ahead", "go forward quickly", "dash forward", "forward at full speed"),
    Wish.FORWARD: ("drive ahead", "keep going", "go straight", "walk straight on", "continue forward", "advance"),
    Wish.LEFT: ("take a left", "turn to the left", "now left", "left, please", "make a left"),
    Wish.RIGHT: ("take a right", "turn to the right", "now right", "right, please", "make a right"),
    Wish.BACK: ("step back", "go backwards", "move back a bit"),
    Wish.WAIT: ("wait here", "do not move", "hold still", "stay put"),
}

ROUTE: tuple[tuple[float, float], ...] = (
    (0.9, 2.0),
    (3.7, 2.0),  # through the first doorway
    (3.7, 2.6),
    (6.2, 2.6),  # through the second
    (6.2, 1.0),
    (6.2, 2.6),
    (3.7, 2.6),
    (3.7, 1.0),
    (3.7, 2.0),
    (0.9, 2.0),
)

_ARRIVED_M = 0.35
_FAST_FROM_M = 1.4
_OFF_RAD = 0.3
"""Off by more than this, the robot has to turn: at a doorway 1.3 m away it would pass 0.4 m beside the middle."""

_AIMED_RAD = 0.1

_REACTION_NS = 350 * NS_PER_MS
"""From the word to the motion: half a period until the next observation, a deadline, and some of the ramp."""

_BREATH_NS = 400 * NS_PER_MS
_PATIENCE_NS = 2_400 * NS_PER_MS


class Operator:
    """Walks the robot along ``route`` and back to its beginning, over and over."""

    def __init__(self, *, seed: int, route: Sequence[tuple[float, float]] = ROUTE) -> None:
        self._random = random.Random(seed)
        self._route = tuple(route)
        self._next = 0
        self._fresh: dict[Wish, list[str]] = {wish: [] for wish in Wish}
        self._spoke_ns: int | None = None
        self._speaks_until_ns = 0
        self._moved_ns = 0
        self._seen: Pose | None = None
        self.said = Utterance(text=self._words(Wish.WAIT), wish=Wish.WAIT)
        self.phrases = 0
        self.reached = 0

    def watch(self, pose: Pose, *, angular_rad_s: float, now_ns: int) -> Utterance:
        """Look at the robot and say what has to be said; the words that stand."""
        if self._seen is None or pose != self._seen:
            self._seen, self._moved_ns = pose, now_ns
        if pose.distance_to(*self._route[self._next]) < _ARRIVED_M:
            self._next, self.reached = (self._next + 1) % len(self._route), self.reached + 1
        wish = self._wish(pose, angular_rad_s=angular_rad_s)
        silent_ns = None if self._spoke_ns is None else now_ns - self._spoke_ns
        ignored = now_ns - max(self._moved_ns, self._spoke_ns or 0) > _PATIENCE_NS
        if now_ns >= self._speaks_until_ns and (
            silent_ns is None or (silent_ns >= _BREATH_NS and (wish is not self.said.wish or ignored))
        ):
            self.say(Utterance(text=self._words(wish), wish=wish), now_ns=now_ns)
        return self.said

    def say(self, utterance: Utterance, *, now_ns: int, takes_ns: int = 0) -> None:
        """Say something, perhaps nothing that helps; it takes that long before anything else can be said."""
        self.said, self._spoke_ns, self._speaks_until_ns = utterance, now_ns, now_ns + takes_ns
        self.phrases += 1

    def _wish(self, pose: Pose, *, angular_rad_s: float) -> Wish:
        target = self._route[self._next]
        bearing = pose.bearing_to(*target)
        if self.said.wish in (Wish.LEFT, Wish.RIGHT):
            # By the time that it hears the next words it will have turned on.
            ahead = bearing - angular_rad_s * _REACTION_NS / NS_PER_S
            turn_on = abs(ahead) > _AIMED_RAD and bearing * ahead > 0
        else:
            turn_on = abs(bearing) > _OFF_RAD
        if turn_on:
            return Wish.LEFT if bearing > 0 else Wish.RIGHT
        return Wish.FAST if pose.distance_to(*target) > _FAST_FROM_M else Wish.FORWARD

    def _words(self, wish: Wish) -> str:
        """All phrases of a wish in random order, before any is heard again."""
        if not self._fresh[wish]:
            self._fresh[wish] = self._random.sample(PHRASES[wish], len(PHRASES[wish]))
        return self._fresh[wish].pop()
