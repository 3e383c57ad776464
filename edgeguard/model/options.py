"""The choices a recipe leaves open when a graph is built."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Logits(str, Enum):
    """For which of its k positions a pass returns logits."""

    LAST = "last"
    ALL = "all"


class Weights(str, Enum):
    """What matrices are stored as; what is not the file's own type is made of its exact values.

    ``f16`` is stored in half precision and computed in single on the CPU. ``q8`` and ``q4`` are symmetric blocks of 32,
    rounded to the nearest. ``q4-exact`` is the file's own 4-bit blocks, carried over without a second rounding.
    """

    F32 = "f32"
    F16 = "f16"
    Q8 = "q8"
    Q4 = "q4"
    Q4_EXACT = "q4-exact"

    @property
    def is_float(self) -> bool:
        return self in (Weights.F32, Weights.F16)


class Activations(str, Enum):
    """What a pass computes with, its cache and its logits included."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"


class Attention(str, Enum):
    """One fused operator with a shared cache, or standard operators with a cache that grows (``attention``)."""

    GROUPED = "GroupQueryAttention"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """``activations`` and ``attention`` are what the execution provider runs.

    ``accuracy_level``: of ``MatMulNBits``; 0 computes in float32, 4 quantises the activations to int8 (fast).

    ``weights`` are the layers' matrices, ``head`` and ``embedding`` the two of the vocabulary's size. None is as the
    file has them; but where ``weights`` is a float, head and embedding follow it.
    """

    activations: Activations = Activations.FLOAT32
    attention: Attention = Attention.GROUPED
    accuracy_level: int = 4
    logits: Logits = Logits.LAST
    weights: Weights | None = None
    head: Weights | None = None
    embedding: Weights | None = None

    def of_vocabulary(self, chosen: Weights | None) -> Weights | None:
        """What ``head`` or ``embedding`` comes to."""
        follows = chosen is None and self.weights is not None and self.weights.is_float
        return self.weights if follows else chosen
