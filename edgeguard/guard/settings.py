"""Everything that the core needs of the configuration, worked out once: what a tick would otherwise compute again.

Nanoseconds; axis values in their units, as the float32 that a frame carries. ``from_config`` raises ``ConfigError``
for what would leave the core without an answer on some later tick, so that nothing on the intervening path can fail.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgeguard.answer import Field
from edgeguard.budget.drift import requests_per_false_alarm
from edgeguard.clock import NS_PER_MS
from edgeguard.config import Config
from edgeguard.config.condition import Compare, Condition, leaves
from edgeguard.config.plant_sections import Axis, FieldSpec, Interlock, Rule
from edgeguard.errors import ConfigError
from edgeguard.guard.mapping import Source, as_float32, source_of
from edgeguard.guard.rungs import rung_fields
from edgeguard.guard.stopping import rest_assumed_ns, stopping_problems
from edgeguard.guard.words import normalise
from edgeguard.types import Action, Grade
from edgeguard.types.wire import FLOAT32_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisLimits:
    """One axis of the plant. ``decel`` and ``jerk`` are indexed by grade; ``safe`` is ``None`` for *hold*."""

    name: str
    low: float
    high: float
    safe: float | None
    rate_up: float
    rate_down: float
    decel: tuple[float, ...]
    jerk: tuple[float, ...]
    clamp: bool
    group: str | None
    measured: str | None
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """An interlock with its axis' index. Its range reaches to the safe value, so that it never prevents a stop."""

    name: str
    when: Condition
    axis: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Motive:
    """A rule with its motion as one target per axis (``None``: the axis stops); no motion at all is a stop."""

    name: str
    when: Condition | None
    grade: Grade
    always: bool
    targets: tuple[float | None, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The core's view of the configuration. ``reserve_ns`` and ``wire_ns`` are parts of every budget."""

    tick_ns: int
    period_ns: int
    deadline_ns: int
    life_ns: int
    max_age_ns: int
    observation_timeout_ns: int
    reserve_ns: int
    wire_ns: int
    link_timeout_ns: int
    echo_timeout_ns: int
    rest_assumed_ns: int  # how long stops must have been sent where nobody measures standstill
    hung_after_ns: int
    start_limit_ns: int
    dwell_ns: int
    on_time_to_arm: int
    miss_limit: float
    refill_per_on_time: float
    min_confidence: float | None
    uncalibrated_factor: float | None
    alarm_at: float  # how much evidence of a drift is an alarm
    actions: tuple[Action, ...]
    axes: tuple[AxisLimits, ...]
    fields: tuple[FieldSpec, ...]
    answer_fields: tuple[Field, ...]
    rung_fields: Mapping[str, tuple[Field, ...]]  # what the answer of each plan may have of them
    motives: tuple[Motive, ...]
    watchful: tuple[Motive, ...]  # those of them that are checked while the model decides
    guardrails: tuple[Guardrail, ...]
    bands: tuple[Compare, ...]
    stop_words: Mapping[str, frozenset[str]]

    @classmethod
    def from_config(cls, config: Config, fields: Sequence[Field], *, reserve_ns: int, wire_ns: int) -> Settings:
        """``fields`` are the answer's, ``reserve_ns`` the guard's lateness, ``wire_ns`` a frame's time on the line."""
        problems = stopping_problems(config, wire_ns=wire_ns)
        if problems:
            raise ConfigError([f"{config.file}: {problem}" for problem in problems])
        timing, guarding = config.timing, config.guarding
        axes = tuple(_limits(axis, fields) for axis in config.axes)
        motives = tuple(_motive(rule, axes) for rule in config.rules)
        guardrails = tuple(_guardrail(interlock, axes) for interlock in config.interlocks)
        conditions = [motive.when for motive in motives if motive.when is not None]
        conditions += [rail.when for rail in guardrails]
        return cls(
            tick_ns=timing.tick_ns,
            period_ns=timing.period_ns,
            deadline_ns=timing.deadline_ns,
            life_ns=timing.life_ns,
            max_age_ns=timing.max_age_ns,
            observation_timeout_ns=timing.observation_timeout_ns,
            reserve_ns=reserve_ns,
            wire_ns=wire_ns,
            link_timeout_ns=config.link.timeout_ns,
            echo_timeout_ns=config.link.echo_timeout_ns,
            rest_assumed_ns=rest_assumed_ns(config, wire_ns=wire_ns),
            hung_after_ns=guarding.hung_after_ns,
            start_limit_ns=guarding.start_limit_ns,
            dwell_ns=guarding.dwell_ns,
            on_time_to_arm=guarding.on_time_to_arm,
            miss_limit=guarding.miss_limit,
            refill_per_on_time=guarding.refill_per_on_time,
            min_confidence=config.min_confidence,
            uncalibrated_factor=config.risk.uncalibrated_factor,
            alarm_at=requests_per_false_alarm(timing.period_ns),
            actions=(guarding.actions[Grade.COMFORTABLE], *(guarding.actions[grade] for grade in list(Grade)[1:])),
            axes=axes,
            fields=config.fields,
            answer_fields=tuple(fields),
            rung_fields=rung_fields(config, fields),
            motives=motives,
            watchful=tuple(motive for motive in motives if motive.always),
            guardrails=guardrails,
            bands=tuple(dict.fromkeys(band for condition in conditions for band in _bands(condition))),
            stop_words={
                spec.name: frozenset(map(normalise, spec.stop_words)) for spec in config.fields if spec.stop_words
            },
        )

    @property
    def link_timeout_ms(self) -> int:
        return self.link_timeout_ns // NS_PER_MS


def _limits(axis: Axis, fields: Sequence[Field]) -> AxisLimits:
    low, high = as_float32(axis.low), as_float32(axis.high)
    if not -FLOAT32_MAX <= low <= high <= FLOAT32_MAX:
        raise ConfigError(f"axis {axis.name!r}: {axis.low:g} to {axis.high:g} is more than a frame's float32 carries")
    comfortable, emergency = axis.decel[Grade.COMFORTABLE], axis.decel[Grade.EMERGENCY]
    jerk = axis.jerk[Grade.COMFORTABLE]
    sharper = max(jerk, axis.jerk[Grade.EMERGENCY])  # else an emergency could not take over a comfortable stop
    return AxisLimits(
        name=axis.name,
        low=low,
        high=high,
        safe=None if axis.safe is None else as_float32(axis.safe),
        rate_up=axis.rate_up,
        rate_down=axis.rate_down,
        decel=(comfortable, comfortable, emergency, emergency),
        jerk=(jerk, jerk, sharper, sharper),
        clamp=axis.clamp,
        group=axis.group,
        measured=axis.measured,
        source=source_of(axis, fields),
    )


def _motive(rule: Rule, axes: tuple[AxisLimits, ...]) -> Motive:
    targets = None
    if rule.axes is not None:
        motion = rule.axes
        targets = tuple(as_float32(motion[axis.name]) if axis.name in motion else None for axis in axes)
    return Motive(name=rule.name, when=rule.when, grade=rule.grade, always=rule.always, targets=targets)


def _guardrail(interlock: Interlock, axes: tuple[AxisLimits, ...]) -> Guardrail:
    index = next(index for index, axis in enumerate(axes) if axis.name == interlock.axis)
    safe = axes[index].safe
    return Guardrail(
        name=interlock.name,
        when=interlock.when,
        axis=index,
        low=min(as_float32(interlock.low), math.inf if safe is None else safe),
        high=max(as_float32(interlock.high), -math.inf if safe is None else safe),
    )


def _bands(condition: Condition) -> Iterator[Compare]:
    """The comparisons with a hysteresis band: those that need a memory."""
    return (leaf for leaf in leaves(condition) if isinstance(leaf, Compare) and leaf.until is not None)
