"""Which causes hold during one step, since when, and when each of them clears.

A cause either *holds* (somebody finds its condition true at this very step) or was *struck* (it happened, and stands
until its clear condition is met). The rows of ``causes.TABLE`` say which; this file only keeps the books, and notes one
event per cause that is raised or cleared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from edgeguard.clock import ms_from_ns
from edgeguard.guard.causes import TABLE, Clear
from edgeguard.guard.events import EventName, event
from edgeguard.guard.state import Standing
from edgeguard.types import Cause, Event, Grade

_COUNTED = (Clear.FITTED, Clear.PROVEN, Clear.PROVEN_AND_DWELL)


class Ledger:
    """The books of one step: opened on the state's, handed back as ``standing``."""

    __slots__ = ("_events", "_held", "_now_ns", "_standing")

    def __init__(self, standing: Mapping[Cause, Standing], *, now_ns: int, events: list[Event]) -> None:
        self._standing = dict(standing)
        self._now_ns = now_ns
        self._events = events
        self._held: dict[Cause, tuple[str, Grade]] = {}

    @property
    def standing(self) -> Mapping[Cause, Standing]:
        return self._standing

    def __contains__(self, cause: Cause) -> bool:
        return cause in self._standing

    def __bool__(self) -> bool:
        return bool(self._standing)

    @property
    def speaks(self) -> bool:
        """Whether anything stands, or has been found to hold at this step."""
        return bool(self._standing or self._held)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """What holds, the worst first."""
        return tuple(sorted(self._standing, key=lambda cause: -self._standing[cause].grade))

    @property
    def grade(self) -> Grade:
        return max((one.grade for one in self._standing.values()), default=Grade.NONE)

    @property
    def grade_besides_rules(self) -> Grade:
        """What forbids a rule to move: a rule's own grade is how it moves, not that it may not."""
        return max((one.grade for cause, one in self._standing.items() if cause is not Cause.RULE), default=Grade.NONE)

    @property
    def detail(self) -> str:
        """What holds, in words, the worst first."""
        return "; ".join(f"{cause.value}: {self._standing[cause].detail}" for cause in self.causes)

    @property
    def latching(self) -> tuple[Cause, ...]:
        """What only the operator clears."""
        return tuple(cause for cause in self.causes if TABLE[cause].latches) if self._standing else ()

    @property
    def leaving(self) -> bool:
        """Whether the guard was told to end."""
        return any(TABLE[cause].clear is Clear.RESTART for cause in self._standing)

    @property
    def ends_on_time(self) -> bool:
        """Whether one on-time answer would clear everything that holds: then it may be applied at once."""
        return all(TABLE[cause].clear is Clear.ON_TIME for cause in self._standing)

    def hold(self, cause: Cause, detail: str, *, grade: Grade | None = None) -> None:
        """The condition of ``cause`` is true at this step; ``reconcile`` takes it into the books."""
        self._held.setdefault(cause, (detail, TABLE[cause].grade if grade is None else grade))

    def reconcile(self) -> None:
        """After everybody has looked: raise what holds and is new, clear what was a condition and holds no more."""
        for cause in [cause for cause in self._standing if TABLE[cause].clear is Clear.CONDITION]:
            if cause not in self._held:
                self._clear(cause)
        for cause, (detail, grade) in self._held.items():
            known = self._standing.get(cause)
            if known is None or known.grade is not grade:
                self._clear(cause)
                self.strike(cause, detail, grade=grade)
            elif TABLE[cause].clear in _COUNTED:
                self._standing[cause] = replace(known, raised_ns=self._now_ns, in_a_row=0)

    def strike(self, cause: Cause, detail: str, *, grade: Grade | None = None) -> None:
        """``cause`` has happened now; again, if it stands already: its count and its dwell begin anew."""
        known = self._standing.get(cause)
        if known is None:
            self._events.append(event(self._now_ns, EventName.RAISED, f"{cause.value}: {detail}"))
        self._standing[cause] = Standing(
            since_ns=self._now_ns if known is None else known.since_ns,
            raised_ns=self._now_ns,
            detail=detail,
            grade=TABLE[cause].grade if grade is None else grade,
        )

    def note_good_observation(self) -> None:
        self._clear_all(Clear.OBSERVATION)

    def note_on_time(self, *, fitted: bool, needed: int, dwell_ns: int) -> None:
        """An answer was on time; ``fitted``: and had been expected to be. Clears what that proves."""
        self._clear_all(Clear.ON_TIME)
        for cause, one in list(self._standing.items()):
            clear = TABLE[cause].clear
            if clear not in _COUNTED or (clear is Clear.FITTED and not fitted):
                continue
            in_a_row = one.in_a_row + 1
            dwelt = clear is not Clear.PROVEN_AND_DWELL or self._now_ns - one.raised_ns >= dwell_ns
            if in_a_row >= needed and dwelt:
                self._clear(cause)
            else:
                self._standing[cause] = replace(one, in_a_row=in_a_row)

    def note_failure(self) -> None:
        """An answer was not on time or not usable: every row of on-time answers begins anew."""
        for cause, one in self._standing.items():
            if one.in_a_row:
                self._standing[cause] = replace(one, in_a_row=0)

    def rearm(self) -> tuple[Cause, ...]:
        """Clear what only the operator clears, unless some of it holds or came at this step: that is returned."""
        still = tuple(
            cause for cause in self.latching if cause in self._held or self._standing[cause].raised_ns == self._now_ns
        )
        if not still:
            self._clear_all(Clear.OPERATOR)
        return still

    def _clear_all(self, clear: Clear) -> None:
        for cause in [cause for cause in self._standing if TABLE[cause].clear is clear]:
            self._clear(cause)

    def _clear(self, cause: Cause) -> None:
        one = self._standing.pop(cause, None)
        if one is not None:
            held_ms = ms_from_ns(self._now_ns - one.since_ns)
            self._events.append(event(self._now_ns, EventName.CLEARED, f"{cause.value}: after {held_ms:.0f} ms"))
