"""The events of the guard: stable names, one event per transition, with its numbers in the detail."""

from __future__ import annotations

from enum import Enum

from edgeguard.types import Event


class EventName(str, Enum):
    """What can happen. A change of mode is an event under the mode's own name."""

    RAISED = "cause raised"
    CLEARED = "cause cleared"
    RULE = "rule"  # another rule of the configuration acts
    LIFE_ENDED = "life ended"
    DISCARDED = "answer discarded"
    REPLACED = "worker replaced"
    LEVEL = "thermal level"
    MARGIN = "margin on the bound"
    REARMED = "re-armed"
    REARM_REFUSED = "re-arm refused"


def event(now_ns: int, name: EventName, detail: str) -> Event:
    return Event(at_ns=now_ns, name=name.value, detail=detail)
