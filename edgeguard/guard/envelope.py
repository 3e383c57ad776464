"""The last gate: what may go to the wire, whoever proposed it, model or rule.

Judged are the values that will be encoded (float32). Out of a range or of an interlock: refused, or, where the axis
says so, clamped, and then its whole group is scaled towards its safe values, so that a clamped turn keeps its curve.
A stop is not judged here: it only ever goes towards the safe values, which lie within every range and interlock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from edgeguard.guard.mapping import as_float32
from edgeguard.guard.settings import AxisLimits, Guardrail


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``targets`` as they may be followed, or why none of them may. ``pulled`` are the axes that were changed."""

    targets: tuple[float, ...]
    refusal: str = ""
    adjusted: tuple[str, ...] = ()
    pulled: frozenset[int] = frozenset()


def admit(
    axes: tuple[AxisLimits, ...], targets: tuple[float, ...], rails: Sequence[Guardrail], *, clamp: bool = False
) -> Verdict:
    """Judge ``targets``, one per axis. ``clamp``: a rule's motion is clamped where the model's would be refused."""
    if not rails and all(axis.low <= target <= axis.high for axis, target in zip(axes, targets, strict=True)):
        return Verdict(targets=targets)
    shares = {axis.group: 1.0 for axis in axes if axis.group is not None}
    allowed = list(targets)
    adjusted = []
    for index, (axis, target) in enumerate(zip(axes, targets, strict=True)):
        low, high, why = _range(axis, index, rails)
        if low <= target <= high:
            continue
        if not math.isfinite(target) or low > high or not (axis.clamp or clamp):
            return Verdict(targets=targets, refusal=f"{axis.name} = {target:g} is out of {low:g} to {high:g} ({why})")
        allowed[index] = min(max(target, low), high)
        adjusted.append(f"{axis.name}: {target:g} -> {allowed[index]:g} ({why})")
        if axis.group is not None and axis.safe is not None:
            shares[axis.group] = min(shares[axis.group], (allowed[index] - axis.safe) / (target - axis.safe))
    for index, axis in enumerate(axes):
        if axis.group is None or axis.safe is None:
            continue
        scaled = as_float32(axis.safe + shares[axis.group] * (targets[index] - axis.safe))
        if abs(scaled - axis.safe) < abs(allowed[index] - axis.safe):
            adjusted.append(f"{axis.name}: {targets[index]:g} -> {scaled:g} (with its group)")
            allowed[index] = scaled
    pulled = frozenset(index for index, target in enumerate(targets) if allowed[index] != target)
    return Verdict(targets=tuple(allowed), adjusted=tuple(adjusted), pulled=pulled)


def _range(axis: AxisLimits, index: int, rails: Sequence[Guardrail]) -> tuple[float, float, str]:
    """The axis' range within every interlock that binds it, and what the narrowest is called."""
    low, high, why = axis.low, axis.high, "range"
    for rail in rails:
        if rail.axis == index and (rail.low > low or rail.high < high):
            low, high, why = max(low, rail.low), min(high, rail.high), f"interlock {rail.name}"
    return low, high, why
