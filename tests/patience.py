"""Waiting for what comes by itself, on a machine that may be slow or set us aside: as long as only a hang takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60.0
LOOK_S = 0.02

T = TypeVar("T")


def wait_for(
    look: Callable[[], T], why: str, *, stands: Callable[[], object] | None = None, pause_s: float = LOOK_S
) -> T:
    """What ``look`` returns, as soon as that is true. Else it fails, and says ``why`` it should have come and how it
    ``stands``, or what ``look`` has returned last.
    """
    give_up = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {PATIENCE_S:g} s: {why}; {seen if stands is None else stands()}")
        time.sleep(pause_s)
    return seen
