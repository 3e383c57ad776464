"""Reads what describes the plant: observation fields, axes, rules and interlocks. Units are in the keys."""

from __future__ import annotations

import math
from collections.abc import Mapping

from edgeguard.config.condition import Compare, Condition, Equals, OlderThan, leaves, read_condition
from edgeguard.config.plant_sections import Axis, AxisSource, FieldSpec, Interlock, Rule
from edgeguard.config.reader import REQUIRED, Problems, Table
from edgeguard.types import Grade, Value

_ACTING = (Grade.COMFORTABLE, Grade.EMERGENCY)


def read_field(table: Table) -> FieldSpec:
    """One ``[[field]]``."""
    kind = table.text("kind", default="number", among=("number", "text", "flag"))
    low = table.optional_number("min") if kind == "number" else None
    high = table.optional_number("max") if kind == "number" else None
    if low is not None and high is not None and low > high:
        table.refuse("min", f"{low:g} is above max ({high:g})")
    spec = FieldSpec(
        name=table.text("name"),
        kind=kind,
        low=low,
        high=high,
        decimals=table.integer("decimals", default=2, low=0, high=9) if kind == "number" else 0,
        max_chars=table.integer("max_chars", default=80, low=1, high=10_000) if kind == "text" else 0,
        max_age_ns=table.optional_milliseconds("max_age_ms", low=1, high=3_600_000),
        stop_words=tuple(word.casefold() for word in table.texts("stop_words")) if kind == "text" else (),
        examples=table.texts("examples") if kind == "text" else (),
    )
    for example in spec.examples:
        if len(example) > spec.max_chars:
            table.refuse("examples", f"{example!r} has {len(example)} characters, more than max_chars")
    if table.raw("kind", default="number", kind=object) == kind:  # else nobody knows which keys belong here
        table.close()
    return spec


def read_axis(table: Table) -> Axis:
    """One ``[[axis]]``. ``decel_*`` and ``jerk_*`` default to ``rate_down`` and to no limit."""
    name = table.text("name")
    low, high = table.number("min"), table.number("max")
    if low > high:
        table.refuse("min", f"{low:g} is above max ({high:g})")
    hold = table.text("safe", default="hold", among=("hold",)) if _is_text(table, "safe") else None
    safe = None if hold else table.number("safe", default=0.0, low=min(low, high), high=max(low, high))
    rate_up = table.number("rate_up", low=1e-9)
    rate_down = table.number("rate_down", default=rate_up, low=1e-9)
    comfortable = table.number("decel_comfortable", default=rate_down, low=1e-9)
    decel = {
        Grade.COMFORTABLE: comfortable,
        Grade.EMERGENCY: table.number("decel_emergency", default=max(comfortable, rate_down), low=comfortable),
    }
    jerk = {
        Grade.COMFORTABLE: table.number("jerk_comfortable", default=math.inf, low=1e-9)
        if "jerk_comfortable" in table
        else math.inf,
        Grade.EMERGENCY: table.number("jerk_emergency", low=1e-9) if "jerk_emergency" in table else math.inf,
    }
    if safe is None and "group" in table:
        table.refuse("group", "an axis that holds has no safe value to be scaled towards")
    axis = Axis(
        name=name,
        unit=table.text("unit", default=""),
        source=_read_source(table.table("source")),
        low=low,
        high=high,
        rate_up=rate_up,
        rate_down=rate_down,
        safe=safe,
        measured=table.text("measured", default=None),
        clamp=table.text("on_violation", default="refuse", among=("refuse", "clamp")) == "clamp",
        group=table.text("group", default=None),
        clearance=table.optional_number("clearance", low=0),
        decel=decel,
        jerk=jerk,
    )
    table.close()
    return axis


def read_rule(table: Table, *, problems: Problems) -> Rule:
    """One ``[[rule]]``. Without ``when`` it always holds; without ``axes`` it is a stop."""
    names = [grade.name.lower() for grade in _ACTING]
    axes = table.numbers("axes") if "axes" in table else None
    rule = Rule(
        name=table.text("name"),
        when=_read_when(table, problems=problems) if "when" in table else None,
        grade=Grade[table.text("grade", default="comfortable", among=names).upper()],
        axes=axes,
        always=table.flag("always", default=False),
    )
    if rule.always and rule.when is None:
        table.refuse("always", "a rule that is checked while the model decides needs a condition (when)")
    table.close()
    return rule


def read_interlock(table: Table, *, problems: Problems) -> Interlock:
    """One ``[[interlock]]``: the range that the axis is held to while the condition holds."""
    interlock = Interlock(
        name=table.text("name"),
        when=_read_when(table, problems=problems),
        axis=table.text("axis"),
        low=table.number("min", default=-math.inf) if "min" in table else -math.inf,
        high=table.number("max", default=math.inf) if "max" in table else math.inf,
    )
    if math.isinf(interlock.low) and math.isinf(interlock.high):
        table.refuse("max", "missing; an interlock needs min or max (or both)")
    for key in ("min", "max"):
        table.raw(key, default=0.0, kind=object)
    table.close()
    return interlock


def cross_check(
    *,
    fields: tuple[FieldSpec, ...],
    axes: tuple[Axis, ...],
    rules: tuple[Rule, ...],
    interlocks: tuple[Interlock, ...],
    problems: Problems,
) -> None:
    """Names that must exist, names that must be unique, and a last rule that is a stop."""
    by_field = {spec.name: spec for spec in fields}
    by_axis = {axis.name: axis for axis in axes}
    for key, names in (
        ("field", [spec.name for spec in fields]),
        ("axis", [axis.name for axis in axes]),
        ("rule", [rule.name for rule in rules]),
        ("interlock", [interlock.name for interlock in interlocks]),
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            problems.add(key, f"{name!r} is there twice")
    if not axes:
        problems.add("axis", "missing; the plant needs at least one [[axis]]")
    if not rules or rules[-1].when is not None or rules[-1].axes is not None:
        problems.add("rule", "the last [[rule]] must be a stop: neither when nor axes")
    for rule in rules[:-1]:
        if rule.when is None:
            problems.add(f"rule {rule.name!r}", "always holds, so that no rule behind it is ever reached")
    conditions: list[tuple[str, Condition]] = [(f"rule {r.name!r}", r.when) for r in rules if r.when is not None]
    conditions += [(f"interlock {i.name!r}", i.when) for i in interlocks]
    for where, condition in conditions:
        for problem in dict.fromkeys(_problem(leaf, by_field) for leaf in leaves(condition)):
            if problem is not None:
                problems.add(where, problem)
    for axis in axes:
        if axis.measured is not None and axis.measured not in by_field:
            problems.add(f"axis {axis.name!r}", f"measured: no [[field]] is named {axis.measured!r}")
    for where, named in [(f"rule {r.name!r}", r.axes or {}) for r in rules] + [
        (f"interlock {i.name!r}", {i.axis: 0.0}) for i in interlocks
    ]:
        _check_axes(where, named, by_axis=by_axis, problems=problems, ranged=where.startswith("rule"))


def _problem(leaf: Compare | Equals | OlderThan, by_field: Mapping[str, FieldSpec]) -> str | None:
    """Why a comparison could never be true: its field does not exist, or is of another kind."""
    spec = by_field.get(leaf.field)
    if spec is None:
        return f"no [[field]] is named {leaf.field!r}; known: {', '.join(by_field) or 'none'}"
    if isinstance(leaf, Compare) and spec.kind != "number":
        return f"{leaf.field!r} is a {spec.kind}: compare it with equals"
    if isinstance(leaf, Equals) and spec.kind != _kind_of(leaf.value):
        return f"{leaf.field!r} is a {spec.kind}, and never equals {leaf.value!r}"
    return None


def _kind_of(value: Value) -> str:
    """The kind of field that can hold ``value``."""
    return "flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _check_axes(
    where: str, named: Mapping[str, float], *, by_axis: Mapping[str, Axis], problems: Problems, ranged: bool
) -> None:
    for name, value in named.items():
        axis = by_axis.get(name)
        if axis is None:
            problems.add(where, f"no [[axis]] is named {name!r}; known: {', '.join(by_axis) or 'none'}")
        elif ranged and not axis.low <= value <= axis.high:
            problems.add(where, f"{name} = {value:g} is out of the axis' range {axis.low:g} to {axis.high:g}")


def _is_text(table: Table, key: str) -> bool:
    return key in table and isinstance(table.raw(key, kind=object), str)


def _read_source(table: Table) -> AxisSource:
    values = table.numbers("values") if "values" in table else None
    times = _read_source(table.table("times")) if "times" in table else None
    source = AxisSource(field=table.text("field"), values=values, times=times)
    table.close()
    return source


def _read_when(table: Table, *, problems: Problems) -> Condition:
    return read_condition(table.raw("when", default=REQUIRED), path=table.key("when"), problems=problems)
