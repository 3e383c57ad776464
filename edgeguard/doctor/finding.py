"""One line of an examination: what was looked at, how it stands, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """The worst of all lines is the exit code."""

    OK = 0
    WARN = 1
    FAIL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``remedy`` is the way out; empty when there is nothing to do."""

    level: Level
    text: str
    remedy: str = ""


def ok(text: str) -> Finding:
    return Finding(level=Level.OK, text=text)


def warn(text: str, remedy: str) -> Finding:
    return Finding(level=Level.WARN, text=text, remedy=remedy)


def fail(text: str, remedy: str) -> Finding:
    return Finding(level=Level.FAIL, text=text, remedy=remedy)
