"""Where a pass of some size is dearer than it need be: than a longer one, or than two that have its tokens together.

Kernels take tokens in tiles, and a size that fills none of them well can cost more than one that does. A robot whose
passes have such a size gains by fixed sizes (``[model] shapes``), which are filled up; where two shorter ones would be
cheaper there is no setting for it, and that is worth knowing, too. Milliseconds, tokens. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WORTH = 0.02
"""Of a pass. Less is the noise of a median, and not worth a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A pass of ``tokens`` takes ``ms``; one of the size, or two of the sizes, in ``instead`` take ``instead_ms``."""

    tokens: int
    ms: float
    instead: tuple[int, ...]
    instead_ms: float

    @property
    def saved(self) -> float:
        """The share of the pass."""
        return 1 - self.instead_ms / self.ms


def find_steps(passes_ms: Mapping[int, float], *, worth: float = WORTH) -> list[Step]:
    """Those of the measured sizes where the cheapest other way saves more than ``worth``; the most saved first."""
    found = []
    for tokens, ms in passes_ms.items():
        longer = [(size,) for size in passes_ms if size > tokens]
        halves = [(size, tokens - size) for size in passes_ms if tokens - size in passes_ms and 2 * size >= tokens]
        ways: Sequence[tuple[int, ...]] = [*longer, *halves]
        if ways:
            instead = min(ways, key=lambda way: sum(passes_ms[size] for size in way))
            instead_ms = sum(passes_ms[size] for size in instead)
            found.append(Step(tokens=tokens, ms=ms, instead=instead, instead_ms=instead_ms))
    return sorted((step for step in found if step.saved > worth), key=lambda step: -step.saved)
