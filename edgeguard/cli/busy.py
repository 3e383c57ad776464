"""Whether something else computes here, of what is measured to be compared: it is said, and nothing is refused.

``calibrate`` and ``tune``, whose figures are relied on, refuse to measure (``bench.calibration.sampling``).
"""

from __future__ import annotations

import sys

from edgeguard.board.kernel import FixedKernel
from edgeguard.cli.wrapped import wrapped
from edgeguard.clock import NS_PER_MS

LIMIT = 1.2
"""From here on it is said."""

_LOOK_NS = 300 * NS_PER_MS


def look(kernel: FixedKernel) -> float:
    """How many times what it needs a fixed piece of work takes now."""
    return kernel.busy_factor(for_ns=_LOOK_NS)


def say(factor: float) -> None:
    """On stdout, if it is worth a word."""
    if factor > LIMIT:
        words = "something else computes here, and times are longer for it; end it, and measure again"
        print(wrapped(f"\nmachine busy x{factor:.1f}: {words}", stream=sys.stdout))
