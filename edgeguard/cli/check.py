"""``edgeguard check``: everything that is wrong with a configuration, then where the time of one decision goes."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.budget.profile import Profile
from edgeguard.budget.profile_json import load_profile
from edgeguard.cli.check_prompt import memory, memory_lines, prompt_costs, prompt_section, prompt_summary
from edgeguard.cli.check_tables import budget_table, stops_table
from edgeguard.cli.quantity import digits
from edgeguard.cli.times import add_age
from edgeguard.cli.usable_profile import require_usable
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.config import Config
from edgeguard.engine.providers import provider_of
from edgeguard.engine.session_options import chosen_options, refuse_unknown_keys
from edgeguard.errors import BoundError, ConfigError, ProviderError
from edgeguard.guard.stopping import GUARD_DEATH, StoppingDistance, stopping_distances
from edgeguard.model.variant import find_variant, names_folder
from edgeguard.runtime.assembly import Assembly, assemble
from edgeguard.runtime.budget_line import BudgetLine, budget_line
from edgeguard.runtime.serial_wire import command_wire_ns, wire_expiry, wire_guarantee
from edgeguard.types import ThermalLevel

if TYPE_CHECKING:
    from rich.console import RenderableType

_DESCRIPTION = """\
Read CONFIG and say everything that is wrong with it, at once, each with its key, its value and the way out. Then print
the budget of one decision, from the capture of the observation to the command's last byte on the wire, and how far the
robot travels in each of its stops. With --profile, the measured bound is part of the budget: the worst of all thermal
levels, with the quick way's margin; a profile of another board, period, prompt or provider is refused, with the
difference. Of a ladder of plans each rung's bound is shown, and the budget is that of the cheapest: what no rung fits
is left to the rules.

With --prompt it also says what each field of the observation costs in tokens (with --profile, in milliseconds), where a
digit less would pay, and which order would let more of the last prompt be reused; and what every model takes of the
memory, and the KV cache of each plan. That needs the models' folders.

Else it needs neither the model nor the robot. Exit code 0: usable; 2: it is not; 4: the bound does not fit the
deadline; 7: the profile is another board's, or another configuration's.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="say everything that is wrong with a configuration, and where its time goes",
        description=_DESCRIPTION,
    )
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the configuration, for example robot.toml")
    parser.add_argument("--profile", type=Path, help="a calibration profile, for the bound")
    add_age(parser, default_ns=None, said="max_age_ms")
    parser.add_argument("--prompt", action="store_true", help="what each field costs; needs the model")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    assembly = assemble(arguments.config)
    config = assembly.config
    _require_known(config)
    profile = None
    if arguments.profile is not None:
        require_usable(arguments.profile, config)
        profile = load_profile(arguments.profile)
    age_ns = config.timing.max_age_ns if arguments.age_ns is None else arguments.age_ns
    budget = budget_line(config, age_ns=age_ns, bound_ns=None if profile is None else profile.bound.bound_ns)
    stops = stopping_distances(config, wire_ns=command_wire_ns(config))
    if wire_expiry(config) == "none":  # then nothing stops it
        stops = tuple(stop for stop in stops if not stop.way.startswith(GUARD_DEATH))
    costs = prompt_costs(config, profile) if arguments.prompt else []
    models = memory(config) if arguments.prompt else ()
    if arguments.json:
        found = {**_summary(assembly, budget, stops), **_measured(assembly, profile, budget)}
        found |= {"memory": [dataclasses.asdict(one) for one in models]} if models else {}
        print(json.dumps({**found, **(prompt_summary(costs) if costs else {})}, indent=2))
    else:
        _show(assembly, budget, stops, profile)
        _print(*(prompt_section(costs) if costs else ()), *(f"    {line}" for line in memory_lines(models)))
    if budget.slack_ms is not None and budget.slack_ms < 0:
        raise BoundError(
            f"{config.file}: the bound does not fit: {-budget.slack_ms:.1f} ms are missing. It would fit a deadline of "
            f"{budget.deadline_ms - budget.slack_ms:.0f} ms, or observations at most "
            f"{budget.age_ms + budget.slack_ms:.0f} ms old"
        )
    return 0


def _require_known(config: Config) -> None:
    """``ConfigError`` for a provider, option, recipe or adapter that no guard could start with.

    Folders are not looked for.
    """
    problems = []
    try:
        chosen_options(provider_of(config), config.model.provider_options, threads=1)
    except ProviderError as error:
        problems.append(f"{config.file}: {error}")
    except ConfigError as error:
        problems += [f"{config.file}: {problem}" for problem in error.problems]
    try:
        refuse_unknown_keys(config.model.session_options)
    except ConfigError as error:
        problems += [f"{config.file}: {problem}" for problem in error.problems]
    for one in config.by_model:
        named, adapter = one.model.folder, one.model.adapter
        where = f"plan {one.plans[0].name!r}" if one.model != config.model else "model"
        if not names_folder(named):
            try:
                find_variant(named, adapter=None if adapter is None or "/" in adapter else adapter)
            except ConfigError as error:
                problems += [f"{config.file}: {where}: {problem}" for problem in error.problems]
    if problems:
        raise ConfigError(problems)


def _print(*parts: RenderableType) -> None:
    from edgeguard.cli.console import Console

    for part in parts:
        Console().print(part)


def _measured(assembly: Assembly, profile: Profile | None, budget: BudgetLine) -> dict[str, Any]:
    """The bounds of the plan, or those of every rung by its name, the best first."""
    if profile is None:
        return {}
    rungs = {rung.name: _levels(profile, rung.name, budget) for rung in assembly.config.rungs}
    return {"plans": rungs} if assembly.config.plans else {"levels": rungs[""]}


def _observed(profile: Profile) -> bool:
    return profile.thermal == "observed"


def _levels(profile: Profile, rung: str, budget: BudgetLine) -> dict[str, Any]:
    """The bound of every thermal level, and what it leaves of the budget. Where no sensor told how hot the board was,
    the worst that was measured holds at any."""
    levels = {level.label: level if _observed(profile) else profile.reached for level in ThermalLevel}
    bounds = {label: profile.bound_for(level, rung=rung) for label, level in levels.items()}
    return {
        label: None
        if bound is None
        else {
            "bound_ms": round(ms_from_ns(bound.bound_ns), 3),
            "slack_ms": round(budget.available_ms - ms_from_ns(bound.bound_ns), 3),
            "percentile": bound.percentile,
            "confidence": bound.confidence,
        }
        for label, bound in bounds.items()
    }


def _summary(assembly: Assembly, budget: BudgetLine, stops: tuple[StoppingDistance, ...]) -> dict[str, Any]:
    config = assembly.config
    return {
        "config": str(assembly.config.file),
        "digest": assembly.config.digest,
        "answer": {field.name: len(field) for field in assembly.fields},
        "budget": {
            **dataclasses.asdict(budget),
            "available_ms": round(budget.available_ms, 3),
            "slack_ms": budget.slack_ms,
        },
        "link": {
            "codec": config.link.codec,
            "expiry": wire_expiry(config),
            "timeout_ms": ms_from_ns(config.link.timeout_ns),
            "guarantee": wire_guarantee(config),
        },
        "stops": [{**dataclasses.asdict(stop), "fits": stop.fits} for stop in stops],
        "interventions_per_hour": _interventions_per_hour(assembly),
    }


def _interventions_per_hour(assembly: Assembly) -> float:
    """What ``max_miss_rate`` allows at this period."""
    config = assembly.config
    return config.risk.max_miss_rate * 3600 * NS_PER_S / config.timing.period_ns


def _show(assembly: Assembly, budget: BudgetLine, stops: tuple[StoppingDistance, ...], profile: Profile | None) -> None:
    from rich.padding import Padding

    from edgeguard.cli.console import Console

    console = Console()
    config = assembly.config

    def say(text: str) -> None:
        console.print(Padding(text, (0, 0, 0, 4), expand=False))

    answers = " · ".join(f"{field.name} ({len(field)} values)" for field in assembly.fields)
    console.print_headed("ok", f"{config.file}: nothing is wrong with it", style="green")
    say(f"answer: {answers}")
    console.print(budget_table(budget))
    measured = _measured(assembly, profile, budget)
    for rung, levels in measured.get("plans", {"": measured.get("levels", {})}).items():
        named = f"plan {rung!r}, " if rung else ""
        unmeasured = "never measured, so it does not run" if rung else "never measured, so the guard acts at once"
        boards = {f"{label} board": level for label, level in levels.items()}
        if profile is not None and not _observed(profile):
            boards = {"at any temperature, as no sensor tells it": levels[profile.reached.label]}
        for board, level in boards.items():
            say(f"{named}{board}: {unmeasured if level is None else _level_words(level)}")
    if stops:
        console.print(stops_table(stops, units={axis.name: axis.unit for axis in config.axes}))
    timeout_ms = ms_from_ns(config.link.timeout_ns)
    say(f"link ({config.link.codec}, time-out {timeout_ms:g} ms): {wire_guarantee(config)}")
    if not config.link.port:
        say("link.port is empty: name the serial port before the guard is to start")
    say(
        f"accepted: a miss rate of {config.risk.max_miss_rate:g}, which at one decision every "
        f"{ms_from_ns(config.timing.period_ns):g} ms is {digits(_interventions_per_hour(assembly))} "
        "interventions per hour"
    )


def _level_words(level: Mapping[str, float]) -> str:
    slack_ms = level["slack_ms"]
    room = f"{slack_ms:.1f} ms to spare" if slack_ms >= 0 else f"{-slack_ms:.1f} ms too long"
    return (
        f"{level['bound_ms']:.1f} ms for {level['percentile'] * 100:.10g}% of all requests, at "
        f"{level['confidence']:.0%} confidence: {room}"
    )
