"""What the robot knew, and when it was captured. Monotonic nanoseconds; knows nothing of deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool | Decimal | None
"""A field's value. ``None`` is "no reading", which is never 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One reading of the robot's fields.

    ``captured_ns`` is the monotonic time of capture: the deadline and a command's life count from it. ``ages_ns``
    holds, for fields that are older than that, how much older each was at ``captured_ns``.
    """

    fields: Mapping[str, Value]
    captured_ns: int
    ages_ns: Mapping[str, int] = field(default_factory=dict)

    def age_ns(self, now_ns: int, name: str | None = None) -> int:
        """Age of the observation, or of one field, at ``now_ns``."""
        return now_ns - self.captured_ns + (self.ages_ns.get(name, 0) if name is not None else 0)
