"""What a scenario expects of its run, as data; ``edgeguard.simulation.judgement`` says whether it came so. ::

[expect]
causes = ["miss"]             # all that arose once the guard had been armed, and no other
counters = { trips = 1 }      # of the core (edgeguard.guard.state.Counters), exactly
decel = { linear = 1.0 }      # how fast it may slow down at most, per second
worker_starts = 1
[[expect.at]]
at_ms = 3100
mode = "intervening"
causes = ["miss"]             # exactly these hold
measured = { linear = 0.0 }   # to a hundredth of the axis' range
plan = "brief"                # the last decision had its answer; "" if it had none
[[expect.stop]]               # it comes to rest
axis = "linear"
after_ms = 3000
within_ms = 900
travel = 0.4                  # and goes no farther until then
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from edgeguard.config import Config
from edgeguard.config.reader import Table
from edgeguard.guard.state import Counters
from edgeguard.simulation.values import LONGEST_MS
from edgeguard.types import Cause, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """How things stand at one time."""

    at_ns: int
    mode: Mode | None
    causes: frozenset[Cause] | None
    measured: Mapping[str, float]
    plan: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One axis comes to rest; ``travel`` in its unit times seconds."""

    axis: str
    after_ns: int
    within_ns: int
    travel: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """``None`` or empty: nothing is expected of it."""

    causes: frozenset[Cause] | None
    counters: Mapping[str, int]
    decel: Mapping[str, float]
    worker_starts: int | None
    at: tuple[At, ...]
    stops: tuple[Stop, ...]


def read_expectation(table: Table, config: Config) -> Expectation:
    axes = [axis.name for axis in config.axes]
    expectation = Expectation(
        causes=_read_causes(table),
        counters=_read_counters(table.table("counters")),
        decel=_read_axes(table.table("decel"), axes),
        worker_starts=_optional_count(table, "worker_starts"),
        at=tuple(_read_at(one, axes, ["", *(rung.name for rung in config.plans)]) for one in table.tables("at")),
        stops=tuple(_read_stop(one, axes) for one in table.tables("stop")),
    )
    table.close()
    return expectation


def _read_at(table: Table, axes: list[str], plans: list[str]) -> At:
    mode = table.text("mode", default=None, among=[mode.value for mode in Mode])
    at = At(
        at_ns=table.milliseconds("at_ms", low=0, high=LONGEST_MS),
        mode=None if mode is None else Mode(mode),
        causes=_read_causes(table),
        measured=_read_axes(table.table("measured"), axes),
        plan=table.text("plan", default=None, among=plans),
    )
    table.close()
    return at


def _read_stop(table: Table, axes: list[str]) -> Stop:
    stop = Stop(
        axis=table.text("axis", among=axes),
        after_ns=table.milliseconds("after_ms", low=0, high=LONGEST_MS),
        within_ns=table.milliseconds("within_ms", low=0, high=LONGEST_MS),
        travel=table.optional_number("travel", low=0),
    )
    table.close()
    return stop


def _read_causes(table: Table) -> frozenset[Cause] | None:
    if "causes" not in table:
        table.texts("causes")
        return None
    names, known = table.texts("causes"), [cause.value for cause in Cause]
    for name in names:
        if name not in known:
            table.refuse("causes", f"{name!r} is no cause; known: {', '.join(known)}")
    return frozenset(cause for cause in Cause if cause.value in names)


def _read_counters(table: Table) -> dict[str, int]:
    known = [one.name for one in fields(Counters)]
    for name in table.names():
        if name not in known:
            table.refuse(name, f"nothing is counted under this name; known: {', '.join(known)}")
    return {name: table.integer(name, low=0, high=1_000_000) for name in table.names()}


def _read_axes(table: Table, axes: list[str]) -> dict[str, float]:
    for name in table.names():
        if name not in axes:
            table.refuse(name, f"no [[axis]] has this name; known: {', '.join(axes)}")
    return {name: table.number(name) for name in table.names()}


def _optional_count(table: Table, key: str) -> int | None:
    if key in table:
        return table.integer(key, low=0, high=1_000_000)
    table.raw(key, default=None, kind=object)
    return None
