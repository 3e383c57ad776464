"""The choices a recipe leaves open when a graph is built."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Logits(str, Enum):
    """For which of its k positions a pass returns logits."""

    LAST = "last"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """``accuracy_level``: of ``MatMulNBits``; 0 computes in float32, 4 quantises the activations to int8 (fast)."""

    accuracy_level: int = 4
    logits: Logits = Logits.LAST
