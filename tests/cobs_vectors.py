"""The published test vectors of the codec ``cobs``: a conversation, and frames that must be dropped. For both sides."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.types.wire import Action, Command, Echo, Hello, MotorFlag, Welcome, WireMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A message and its bytes on the line."""

    message: WireMessage
    line: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """At ``ms`` of its clock and in this ``status``, the motor controller hears one frame and says the other."""

    ms: int
    status: MotorFlag
    hears: Frame
    says: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """``axes`` and ``link_timeout_ms`` are the motor controller's, ``session`` what it draws, ``key`` both sides'."""

    key: bytes | None
    axes: tuple[str, ...]
    link_timeout_ms: int
    session: int
    conversation: tuple[Exchange, ...]
    dropped: Mapping[str, bytes]

    @property
    def frames(self) -> list[Frame]:
        return [frame for exchange in self.conversation for frame in (exchange.hears, exchange.says)]


def load(name: str = "cobs.json") -> Vectors:
    content = json.loads((Path(__file__).parent / "vectors" / name).read_text())
    key = content.get("key")
    return Vectors(
        key=None if key is None else bytes.fromhex(key),
        axes=tuple(content["axes"]),
        link_timeout_ms=content["link_timeout_ms"],
        session=content["session"],
        conversation=tuple(
            Exchange(
                ms=one["ms"],
                status=MotorFlag(one["status"]),
                hears=_frame(one["hears"]),
                says=_frame(one["says"]),
            )
            for one in content["conversation"]
        ),
        dropped={why: bytes.fromhex(line) for why, line in content["dropped"].items()},
    )


def _frame(one: Mapping[str, Any]) -> Frame:
    values = {key: value for key, value in one.items() if key not in ("kind", "line")}
    return Frame(message=_READERS[one["kind"]](values), line=bytes.fromhex(one["line"]))


_READERS: Mapping[str, Callable[[dict[str, Any]], WireMessage]] = {
    "command": lambda values: Command(**{**values, "action": Action(values["action"])}),
    "echo": lambda values: Echo(**{**values, "flags": MotorFlag(values["flags"])}),
    "hello": lambda values: Hello(**values),
    "welcome": lambda values: Welcome(**values),
}
