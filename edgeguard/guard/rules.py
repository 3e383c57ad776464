"""Conditions in three values, and what they decide: which rule acts, and what the interlocks allow.

True, False, or ``None``: unknown, because a field is missing, stale, not finite or not there at all (Kleene's logic).
Unknown never selects a rule that moves; a rule that stops it does select, and an interlock it engages. Evaluation is
total: whatever the observation holds, there is an answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from edgeguard.config.condition import AnyOf, Compare, Condition, Equals, Not, OlderThan
from edgeguard.guard.settings import Guardrail, Motive
from edgeguard.guard.state import Sight
from edgeguard.guard.words import normalise
from edgeguard.types import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What may be known at ``now_ns``. ``engaged`` are the hysteresis bands that were entered and not yet left."""

    now_ns: int
    sight: Sight | None
    timeout_ns: int  # without a successor for so long, an observation says nothing any more
    engaged: frozenset[Compare] = frozenset()

    @property
    def fresh(self) -> bool:
        return self.sight is not None and self.now_ns - self.sight.arrived_ns <= self.timeout_ns

    def value(self, name: str) -> Value:
        """The field's value; ``None`` is unknown."""
        sight = self.sight
        if sight is None or not self.fresh or name in sight.unusable:
            return None
        return sight.observation.fields.get(name)

    def age_ns(self, name: str) -> int | None:
        """How old the field is; known also when it is too old."""
        if self.sight is None or self.sight.observation.fields.get(name) is None:
            return None
        return self.sight.observation.age_ns(self.now_ns, name)


def number(value: Value) -> float | None:
    """``value`` as a finite number; ``None`` when it is none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    try:
        as_float = float(value)
    except (OverflowError, ValueError):  # an integer beyond every float, a signalling NaN
        return None
    return as_float if math.isfinite(as_float) else None


def truth(condition: Condition, view: View) -> bool | None:
    """Whether ``condition`` holds; ``None`` is unknown."""
    if isinstance(condition, Compare):
        return _compare(condition, view)
    if isinstance(condition, Equals):
        return _equals(view.value(condition.field), condition.value)
    if isinstance(condition, OlderThan):
        age_ns = view.age_ns(condition.field)
        return None if age_ns is None else age_ns > condition.age_ns
    if isinstance(condition, Not):
        part = truth(condition.part, view)
        return None if part is None else not part
    decisive = isinstance(condition, AnyOf)  # one true part decides ``any``, one false part decides ``all``
    parts = [truth(part, view) for part in condition.parts]
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


def remember(bands: tuple[Compare, ...], view: View) -> frozenset[Compare]:
    """The bands that are engaged once this view has been seen; an unknown value changes none."""
    engaged = set(view.engaged)
    for band in bands:
        inside = _compare(band, view)
        if inside is not None:
            (engaged.add if inside else engaged.discard)(band)
    return frozenset(engaged)


def choose(
    motives: tuple[Motive, ...], view: View, *, may_move: bool, leaving: bool = False, last: str | None = None
) -> Motive:
    """The first rule that acts: a stop unless its condition is known to be false, a motion only if it is known to be
    true. The last one is a stop without a condition.

    ``leaving``: nobody observes any more because the guard is about to end, which is no reason to stop otherwise. Then
    of the stops whose condition is unknown only the one that acted ``last`` goes on.
    """
    for motive in motives[:-1]:
        known = holds(motive, view)
        doubted = known is None and motive.targets is None and (not leaving or motive.name == last)
        if doubted or (known and (motive.targets is None or may_move)):
            return motive
    return motives[-1]


def holds(motive: Motive, view: View) -> bool | None:
    """Whether the rule's condition holds; a rule without one always does."""
    return True if motive.when is None else truth(motive.when, view)


def engaged_rails(guardrails: tuple[Guardrail, ...], view: View) -> list[Guardrail]:
    """The interlocks that bind now: those whose condition holds or is unknown."""
    return [rail for rail in guardrails if truth(rail.when, view) is not False]


def _compare(condition: Compare, view: View) -> bool | None:
    value = number(view.value(condition.field))
    if value is None:
        return None
    until = condition.until
    if condition.below is not None:
        return value < condition.below or (until is not None and value <= until and condition in view.engaged)
    return value > condition.above or (  # type: ignore[operator]  # one of the two is there
        until is not None and value >= until and condition in view.engaged
    )


def _equals(value: Value, wanted: Value) -> bool | None:
    if value is None:
        return None
    if isinstance(value, str) and isinstance(wanted, str):
        return normalise(value) == normalise(wanted)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    known, bound = number(value), number(wanted)
    return None if known is None or bound is None else known == bound
