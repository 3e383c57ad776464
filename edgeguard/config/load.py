"""Reads the configuration file, once: TOML in, frozen sections out, or every problem at once.

What is checked here needs the file alone. What needs the answer's schema, the model or the board is checked by
``edgeguard check`` and at the start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeguard.clock import ms_from_ns
from edgeguard.config.model import read_model, read_provider
from edgeguard.config.plans import NO_SCHEMAS, Schema, read_plans, read_schema_of
from edgeguard.config.plant import cross_check, read_axis, read_field, read_interlock, read_rule
from edgeguard.config.reader import Problems, Table
from edgeguard.config.recording import read_metrics, read_recording
from edgeguard.config.sections import Config, Example, Guarding, Link, Prompt, Risk, Rung, Timing
from edgeguard.config.toml import parse_toml, read_toml
from edgeguard.types import Action, Grade

START_LIMIT_MS = 300_000
"""For loading, the prefix and the warm-up. A provider that compiles takes minutes; calibration waits as long."""

LINK_TIMEOUT_TICKS = 3
"""The link timeout is at least so many ticks, so that one late tick does not stop the robot (design, point 2)."""


def load_config(path: Path | str) -> Config:
    """The configuration in ``path``; ``ConfigError`` lists everything that is wrong with it."""
    config, problems = read_config(path)
    problems.raise_if_any()
    return config


def read_config(path: Path | str) -> tuple[Config, Problems]:
    """Like ``load_config``, with the problems still to be raised: for whoever has more to check."""
    file = Path(path)
    return _read_document(*read_toml(file, what="an existing TOML file, or let edgeguard init write one"), file=file)


def parse_config(content: bytes, *, file: Path, schemas: Mapping[str, Schema] = NO_SCHEMAS) -> Config:
    """Like ``load_config``, from bytes. Relative paths are taken from the folder of ``file``.

    ``schemas`` stand for those of the plans, by name, and ``""`` for the answer's, so that a recorded configuration
    needs no file beside it.
    """
    config, problems = _read_document(content, parse_toml(content, file=file), file=file, schemas=schemas)
    problems.raise_if_any()
    return config


def _read_document(
    content: bytes, document: Mapping[str, Any], *, file: Path, schemas: Mapping[str, Schema] = NO_SCHEMAS
) -> tuple[Config, Problems]:
    problems = Problems(str(file))
    root = Table(document, path="", problems=problems)
    config = _read(root, file=file, digest=hashlib.sha256(content).hexdigest(), schemas=schemas, problems=problems)
    root.close()
    return config, problems


def _read(root: Table, *, file: Path, digest: str, schemas: Mapping[str, Schema], problems: Problems) -> Config:
    timing = _read_timing(root.table("timing"))
    fields = tuple(read_field(table) for table in root.tables("field"))
    axes = tuple(read_axis(table) for table in root.tables("axis"))
    rules = tuple(read_rule(table, problems=problems) for table in root.tables("rule"))
    interlocks = tuple(read_interlock(table, problems=problems) for table in root.tables("interlock"))
    cross_check(fields=fields, axes=axes, rules=rules, interlocks=interlocks, problems=problems)
    answer = root.table("answer")
    schema = read_schema_of(answer, folder=file.parent, recorded=schemas.get(""))
    min_confidence = answer.optional_number("min_confidence", low=0, high=1)
    answer.close()
    prompt = _read_prompt(root.table("prompt"))
    model = read_model(root.table("model"), folder=file.parent)
    state = root.text("state_directory", default=None)
    return Config(
        file=file,
        digest=digest,
        timing=timing,
        model=model,
        providers=tuple(read_provider(table, folder=file.parent) for table in root.tables("provider")),
        prompt=prompt,
        schema=schema,
        plans=tuple(
            read_plans(
                root.tables("plan"),
                whole=Rung(name="", model=model, prompt=prompt, schema=schema),
                folder=file.parent,
                recorded=schemas,
            )
        ),
        min_confidence=min_confidence,
        fields=fields,
        axes=axes,
        rules=rules,
        interlocks=interlocks,
        guarding=_read_guarding(root.table("guard"), timing=timing),
        link=_read_link(root.table("link"), timing=timing, folder=file.parent),
        risk=_read_risk(root.table("budget")),
        recording=read_recording(root.table("record")),
        metrics=read_metrics(root.table("metrics"), folder=file.parent),
        state_directory=None if state is None else file.parent / state,
    )


def _read_timing(table: Table) -> Timing:
    tick_ns = table.milliseconds("tick_ms", default=20, low=1, high=1_000)
    period_ns = table.milliseconds("period_ms", default=200, low=10, high=60_000)
    deadline_ns = table.milliseconds("deadline_ms", default=200, low=10, high=60_000)
    least_life_ns = period_ns + deadline_ns + tick_ns
    timing = Timing(
        tick_ns=tick_ns,
        period_ns=period_ns,
        deadline_ns=deadline_ns,
        life_ns=table.milliseconds("life_ms", default=ms_from_ns(least_life_ns), low=1, high=65_535),
        max_age_ns=table.milliseconds("max_age_ms", default=ms_from_ns(deadline_ns) / 2, low=1, high=60_000),
        observation_timeout_ns=table.milliseconds(
            "observation_timeout_ms", default=2 * ms_from_ns(period_ns), low=1, high=60_000
        ),
        reserve_ns=table.optional_milliseconds("reserve_ms", low=0.1, high=1_000),
    )
    if timing.life_ns < least_life_ns:
        table.refuse(
            "life_ms",
            f"{ms_from_ns(timing.life_ns):g} is too short: a command must live for period + deadline + tick = "
            f"{ms_from_ns(least_life_ns):g} ms, or the robot stutters between two on-time answers",
        )
    if tick_ns * 2 > period_ns:
        table.refuse("tick_ms", f"{ms_from_ns(tick_ns):g} must be at most half of period_ms")
    table.close()
    return timing


def _read_prompt(table: Table) -> Prompt:
    examples = []
    for example in table.tables("example"):
        examples.append(Example(observation=example.raw("observation"), answer=example.raw("answer")))
        example.close()
    prompt = Prompt(
        system=table.text("system", default=""),
        user=table.text("user"),
        examples=tuple(examples),
    )
    table.close()
    return prompt


def _read_guarding(table: Table, *, timing: Timing) -> Guarding:
    actions = table.table("actions")
    names = [action.value for action in Action if action is not Action.MOVE]
    guarding = Guarding(
        on_time_to_arm=table.integer("on_time_to_arm", default=3, low=1, high=1_000),
        dwell_ns=table.milliseconds("dwell_ms", default=1_000, low=0, high=600_000),
        miss_limit=table.number("miss_limit", default=3.0, low=1, high=1_000),
        refill_per_on_time=table.number("refill_per_on_time", default=0.25, low=0.001, high=1),
        hung_after_ns=table.milliseconds(
            "hung_after_ms", default=5 * ms_from_ns(timing.period_ns), low=1, high=600_000
        ),
        start_limit_ns=table.milliseconds("start_limit_ms", default=START_LIMIT_MS, low=1, high=3_600_000),
        worker_failures=table.integer("worker_failures", default=5, low=1, high=1_000),
        actions={
            Grade.COMFORTABLE: Action(actions.text("comfortable", default="stop", among=names)),
            Grade.EMERGENCY: Action(actions.text("emergency", default="stop", among=names)),
            Grade.TERMINAL: Action(actions.text("terminal", default="stop", among=names)),
        },
    )
    actions.close()
    table.close()
    return guarding


def _read_link(table: Table, *, timing: Timing, folder: Path) -> Link:
    decel = table.table("controller_decel")
    least_ms = ms_from_ns(LINK_TIMEOUT_TICKS * timing.tick_ns)
    codec = table.text("codec", default="cobs")
    key_file = table.text("key_file", default=None)
    link = Link(
        port=table.text("port", default=""),
        baud=table.integer("baud", default=115_200, low=1_200, high=12_000_000),
        codec=codec,
        options=table.raw(codec, default={}),
        watchdog=table.flag("watchdog", default=False),
        accept_best_effort=table.flag("accept_best_effort", default=False),
        key_file=None if key_file is None else folder / key_file,
        timeout_ns=table.milliseconds("timeout_ms", default=max(80.0, least_ms), low=least_ms, high=65_535),
        echo_timeout_ns=table.milliseconds("echo_timeout_ms", default=5 * least_ms, low=least_ms, high=60_000),
        controller_latency_ns=table.milliseconds("controller_latency_ms", default=5, low=0, high=1_000),
        controller_decel={name: decel.number(name, low=1e-9) for name in decel.names()},
    )
    decel.close()
    table.close()
    return link


def _read_risk(table: Table) -> Risk:
    risk = Risk(
        max_miss_rate=table.number("max_miss_rate", default=0.001, low=1e-6, high=0.5),
        confidence=table.number("confidence", default=0.95, low=0.5, high=0.9999),
        uncalibrated_factor=table.optional_number("uncalibrated_factor", low=1, high=10),
    )
    table.close()
    return risk
