"""edgeguard: a deadline guard for robots with a language model on board.

``Guard`` runs in a process of its own and owns the serial port; ``LoopGuard`` runs inside the caller's loop. Both, and
the nouns that they speak in, are imported when first used.

    from edgeguard import Guard

    with Guard.start("robot.toml", profile="robot.profile.json") as guard:
        for _ in guard.periods():
            record = guard.decide({"said": said, "front_m": lidar.front}, age_ms=lidar.age_ms)
            print(record.decision.source.value, record.decision.set_point.axes, record.decision.detail)

``edgeguard.guide`` has complete programs, ``edgeguard.types`` what is returned, ``edgeguard.errors`` what is raised.
"""

from __future__ import annotations

TYPE_CHECKING = False  # for a type checker it is true: typing takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from edgeguard.runtime.handle import Guard
    from edgeguard.runtime.loop import LoopGuard
    from edgeguard.runtime.status import Status

__version__ = "0.1.0"
__all__ = ["Guard", "LoopGuard", "Status", "__version__"]

_HOMES = {
    "Guard": "edgeguard.runtime.handle",
    "LoopGuard": "edgeguard.runtime.loop",
    "Status": "edgeguard.runtime.status",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'edgeguard' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """With what is imported when first used, so that ``help`` and a completion find it."""
    return sorted({*globals(), *__all__})
