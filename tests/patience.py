"""Waiting for what comes by itself, on a machine that may be slow or set us aside: as long as only a hang takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 60.0

T = TypeVar("T")


def wait_for(look: Callable[[], T], why: str, *, stands: Callable[[], object] | None = None, pause_s: float = 0.02) -> T:
    """What ``look`` returns, as soon as it is something true. ``why`` it is to come, and how it ``stands`` instead (else
    what ``look`` returned last), are said when it never does.
    """
    give_up = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {PATIENCE_S:g} s: {why}; {seen if stands is None else stands()}")
        time.sleep(pause_s)
    return seen
