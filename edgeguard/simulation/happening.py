"""What a script can do to the world, as one table: how each key is read, what it does, and how it is called.

A new kind of event is one row here. A happening is everything that the script does at one time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from edgeguard.clock import ms_from_ns
from edgeguard.config import Config
from edgeguard.config.reader import Table
from edgeguard.simulation.plans import Script
from edgeguard.simulation.source import STAMPS
from edgeguard.simulation.values import (
    LONGEST_MS,
    check_names,
    read_causes,
    read_cleared,
    read_durations,
    read_fields,
    read_milliseconds,
    read_missing,
    say_durations,
    say_fields,
)
from edgeguard.types import Cause, Finish, OperatorWord, ThermalLevel

if TYPE_CHECKING:
    from edgeguard.simulation.world import World

BOARD = (*(level.label for level in ThermalLevel), "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One key of an event. ``read`` notes what is wrong with it; ``do`` gets what was read."""

    read: Callable[[Table, str, Config], Any]
    do: Callable[[World, Any], None]
    call: Callable[[Any], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """``label`` is for people."""

    at_ns: int
    label: str
    deeds: tuple[tuple[str, Any], ...]

    def happen(self, world: World) -> None:
        for key, value in self.deeds:
            KINDS[key].do(world, value)


def read_happening(table: Table, config: Config, *, at_ns: int | None = None) -> Happening:
    """One ``[[event]]``, or with ``at_ns`` the state of the world at the start."""
    when_ns = table.milliseconds("at_ms", low=0, high=LONGEST_MS) if at_ns is None else at_ns
    note = table.text("note", default="")
    deeds = []
    for key, kind in KINDS.items():
        if key in table:
            deeds.append((key, kind.read(table, key, config)))
        else:
            table.raw(key, default=None, kind=object)
    if not deeds and at_ns is None:
        table.refuse("at_ms", f"nothing happens; an event has one or more of: {', '.join(KINDS)}")
    table.close()
    return Happening(at_ns=when_ns, label=note or ", ".join(_labels(deeds)), deeds=tuple(deeds))


def _labels(deeds: list[tuple[str, Any]]) -> Iterator[str]:
    for key, value in deeds:
        yield KINDS[key].call(value)


def _one_of(actions: Mapping[str, Callable[[World], None]], subject: str) -> Kind:
    """A key whose value is the name of something that happens."""
    return Kind(
        read=lambda table, key, _config: table.text(key, among=tuple(actions)),
        do=lambda world, name: actions[name](world),
        call=lambda name: f"{subject} {name}".strip(),
    )


def _read_plans(table: Table, key: str, config: Config) -> dict[str, dict[str, Any]]:
    """For each plan that is named, what is set of its script."""
    tables, names = table.table(key), [rung.name for rung in config.plans]
    check_names(table, key, tables.names(), known=names, what="[[plan]]")
    plans = {}
    for name in tables.names():
        plan = tables.table(name)
        plans[name] = {part: KINDS[part].read(plan, part, config) for part in _SCRIPTED if part in plan}
        for part in _SCRIPTED:
            plan.raw(part, default=None, kind=object)
        plan.close()
    return plans


def _set_plans(world: World, plans: Mapping[str, Mapping[str, Any]]) -> None:
    for name, parts in plans.items():
        for part, value in parts.items():
            _set_script(world.worker.ladder.scripts[name], part, value)


def _set_script(script: Script, part: str, value: Any) -> None:
    setattr(script, _SCRIPTED[part], cycle(value) if part == "latency_ms" else value)


def _of_every_plan(part: str) -> Callable[[World, Any], None]:
    def do(world: World, value: Any) -> None:
        for script in world.worker.ladder.scripts.values():
            _set_script(script, part, value)

    return do


def _say_plans(plans: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(
        f"{name}: {', '.join(KINDS[part].call(value) for part, value in parts.items())}"
        for name, parts in plans.items()
    )


_SCRIPTED = {"answer": "values", "latency_ms": "latencies_ns", "bound_ms": "bounds_ns"}
"""The keys that a plan may have of its own, and what they set of its script."""


def _end_conditions(world: World, causes: tuple[Cause, ...]) -> None:
    for cause in causes:
        world.conditions.pop(cause, None)


def _assign(part: str, attribute: str) -> Callable[[World, Any], None]:
    """Scripts set the public attributes of the world's parts."""
    return lambda world, value: setattr(getattr(world, part), attribute, value)


def _set(part: str, attribute: str, value: Any) -> Callable[[World], None]:
    return lambda world: setattr(getattr(world, part), attribute, value)


KINDS: Mapping[str, Kind] = {
    # The observations.
    "fields": Kind(read=read_fields, do=lambda world, fields: world.source.set(fields), call=say_fields),
    "missing": Kind(
        read=read_missing,
        do=lambda world, names: world.source.set(dict.fromkeys(names)),
        call=lambda names: f"no {', '.join(names)}",
    ),
    "observations": _one_of(
        {"on": _set("source", "running", True), "off": _set("source", "running", False)}, "observations"
    ),
    "age_ms": Kind(
        read=read_milliseconds,
        do=_assign("source", "age_ns"),
        call=lambda age_ns: f"observations {ms_from_ns(age_ns):g} ms old",
    ),
    "stamp": _one_of({name: _set("source", "stamp", name) for name in STAMPS}, "stamp"),
    # The worker.
    "answer": Kind(
        read=lambda table, key, _config: table.raw(key),
        do=_of_every_plan("answer"),
        call=lambda values: f"answer {say_fields(values)}",
    ),
    "latency_ms": Kind(
        read=read_durations,
        do=_of_every_plan("latency_ms"),
        call=lambda latencies_ns: f"answers in {say_durations(latencies_ns)}",
    ),
    "finish": _one_of({one.value: _set("worker", "finish", one) for one in Finish}, "answers:"),
    "confidence": Kind(
        read=lambda table, key, _config: table.number(key, low=0, high=1),
        do=_assign("worker", "confidence"),
        call=lambda confidence: f"answers {confidence:.0%} sure",
    ),
    "bound_ms": Kind(
        read=read_durations,
        do=_of_every_plan("bound_ms"),
        call=lambda bounds_ns: f"bound {say_durations(bounds_ns)}",
    ),
    "plans": Kind(read=_read_plans, do=_set_plans, call=_say_plans),
    "worker": _one_of(
        {
            "dies": lambda world: world.worker.die(),
            "hangs": lambda world: world.worker.hang(),
            "breaks": _set("worker", "broken", True),
            "is mended": _set("worker", "broken", False),
        },
        "worker",
    ),
    # The wire and what is behind it.
    "link": _one_of(
        {"is cut": lambda world: world.wire.cut(), "is restored": lambda world: world.wire.restore()}, "link"
    ),
    "controller": _one_of(
        {
            "freezes": lambda world: world.wire.freeze(frozen=True),
            "thaws": lambda world: world.wire.freeze(frozen=False),
            "fails": lambda world: world.wire.raise_fault(),
            "is e-stopped": lambda world: world.wire.press_estop(),
            "is cleared": lambda world: world.wire.controller.clear(),
        },
        "motor controller",
    ),
    # The operator, and the machine.
    "board": _one_of(
        {name: (lambda world, name=name: world.heat(name)) for name in BOARD},  # type: ignore[misc]
        "board",
    ),
    "operator": _one_of(
        {word.value: (lambda world, word=word: world.say(word)) for word in OperatorWord},  # type: ignore[misc]
        "operator:",
    ),
    "holds": Kind(
        read=read_causes,
        do=lambda world, conditions: world.conditions.update(conditions),
        call=lambda conditions: ", ".join(cause.value for cause in conditions),
    ),
    "ends": Kind(
        read=read_cleared,
        do=_end_conditions,
        call=lambda causes: "no more " + ", ".join(cause.value for cause in causes),
    ),
    "starve_ms": Kind(
        read=read_milliseconds,
        do=lambda world, for_ns: world.starve(for_ns),
        call=lambda for_ns: f"guard starved for {ms_from_ns(for_ns):g} ms",
    ),
    "suspend_ms": Kind(
        read=read_milliseconds,
        do=lambda world, for_ns: world.suspend(for_ns),
        call=lambda for_ns: f"suspended for {ms_from_ns(for_ns):g} ms",
    ),
    "clock_back_ms": Kind(
        read=read_milliseconds,
        do=lambda world, by_ns: world.set_clock_back(by_ns),
        call=lambda by_ns: f"clock set back by {ms_from_ns(by_ns):g} ms",
    ),
}
