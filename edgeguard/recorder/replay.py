"""Runs a recorded flight through the core again, which must decide every step as it did.

Replay starts at any step that holds the state before it, and ends at the next flaw of the log. At every later such step
the state must be the recorded one; then the recorded one is taken, so that a difference is told once and not for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from edgeguard.guard.core import step
from edgeguard.guard.interface import Effects
from edgeguard.guard.settings import Settings
from edgeguard.guard.state import GuardState
from edgeguard.plain import to_plain
from edgeguard.recorder.log import Flaw, FlightEntry
from edgeguard.recorder.record import FlightHeader, FlightStep, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One step that came out otherwise. ``place`` is the first part that differs, with what it was and what it is.

    ``at_ns`` counts from the first step that could be replayed since the guard's start.
    """

    number: int
    at_ns: int
    place: str
    then: str
    now: str


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a log held. ``skipped`` steps have no state to start from: they follow a flaw.

    ``origin_ns`` is the monotonic time from which the present start's are counted.
    """

    starts: int = 0
    steps: int = 0
    decisions: int = 0
    skipped: int = 0
    duration_ns: int = 0
    flaws: list[Flaw] = field(default_factory=list)
    origin_ns: int | None = None

    def begin(self) -> None:
        """The guard was started."""
        self.starts += 1
        self.origin_ns = None

    def count(self, entry: FlightStep, *, after_ns: int) -> None:
        """One more step was replayed; ``after_ns`` is the time of the one before it."""
        self.steps += 1
        self.decisions += entry.effects.record is not None
        self.duration_ns += max(0, entry.now_ns - after_ns)
        self.origin_ns = entry.now_ns if self.origin_ns is None else self.origin_ns

    def since_start_ns(self, at_ns: int) -> int:
        return at_ns - (self.origin_ns or at_ns)


@dataclass(slots=True, kw_only=True)
class Replay:
    """What has come of a replay."""

    tally: Tally = field(default_factory=Tally)
    differences: list[Difference] = field(default_factory=list)

    @property
    def identical(self) -> bool:
        return not self.differences

    def note(self, entry: FlightStep, what: str, then: object, now: object) -> None:
        """Compare what was with what is."""
        if then == now or text_of(then) == text_of(now):
            return
        place, was, is_now = next(_differences(what, to_plain(then), to_plain(now)))
        at_ns = self.tally.since_start_ns(entry.now_ns)
        self.differences.append(
            Difference(number=entry.number, at_ns=at_ns, place=place, then=text_of(was), now=text_of(is_now))
        )


def replay(entries: Iterable[FlightEntry]) -> Replay:
    """Every step again, with the settings it was recorded under; ``ConfigError`` when they can no longer be read."""
    outcome = Replay()
    settings: Settings | None = None
    state: GuardState | None = None
    for entry in entries:
        if isinstance(entry, FlightHeader):
            settings, state = entry.settings(), None
            outcome.tally.begin()
        elif isinstance(entry, Flaw):
            state = None
            outcome.tally.flaws.append(entry)
        elif settings is not None:
            before = state if entry.before is None else entry.before
            if before is None:
                outcome.tally.skipped += 1
                continue
            outcome.tally.count(entry, after_ns=before.now_ns)
            if state is not None and entry.before is not None:
                outcome.note(entry, "state", entry.before, state)
            state, effects = step(settings, before, entry.now_ns, entry.inputs)
            outcome.note(entry, "effects", _decided(entry.effects), effects)
    return outcome


def _decided(effects: Effects) -> Effects:
    """Without what the driver added: when the frame was on the wire."""
    if effects.record is None:
        return effects
    return replace(effects, record=replace(effects.record, on_wire_ns=None))


def _differences(place: str, then: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The parts of two plain values that differ, the deepest that can be named."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*then, *now)):
            yield from _differences(f"{place}.{key}", then.get(key), now.get(key))
        if list(then) != list(now):
            yield f"{place}, the order", list(then), list(now)
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for index, (was, is_now) in enumerate(zip(then, now, strict=True)):
            yield from _differences(f"{place}[{index}]", was, is_now)
    elif text_of(then) != text_of(now):
        yield place, then, now
