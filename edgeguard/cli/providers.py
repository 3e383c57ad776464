"""``edgeguard providers``: what this machine can really run a model on, and what would mend the rest."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.cli.wrapped import wrapped

if TYPE_CHECKING:
    from edgeguard.engine.probe import Finding
    from edgeguard.engine.provider import Provider

_DESCRIPTION = """\
Tries every execution provider in a process of its own: is its package here, does its library load, is there a device,
and does a product of two matrices really run on it. Why one cannot be used comes with the command that would mend it.
A provider whose hardware we have not had says so: its row was written from its documentation.

The configuration chooses one ([model] provider = "…"); another one is never taken in its place. It may bring a row of
its own ([[provider]]), which --config lists too.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "providers",
        help="list the execution providers: which are usable here, and what the others lack",
        description=_DESCRIPTION,
    )
    parser.add_argument("--config", type=Path, metavar="CONFIG", help="a configuration, whose own rows are tried first")
    parser.add_argument("--json", action="store_true", help="print a list of {name, usable, reason, remedy, devices}")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.config import load_config
    from edgeguard.engine.probe import survey
    from edgeguard.engine.provider_table import PROVIDERS
    from edgeguard.engine.providers import own_providers
    from edgeguard.plain import to_plain

    own = own_providers(load_config(arguments.config)) if arguments.config is not None else ()
    findings = survey((*own, *PROVIDERS))
    if arguments.json:
        print(json.dumps(to_plain(findings), indent=2))
    else:
        _show((*own, *PROVIDERS), findings)
    return 0


def _show(rows: tuple[Provider, ...], findings: list[Finding]) -> None:
    from rich.text import Text

    from edgeguard.cli.console import Console

    console = Console()
    column = max(len(row.name) for row in rows) + 2
    for row, finding in zip(rows, findings, strict=True):
        name, here = (f"{row.name:{column}}", "bold"), ("usable  ", "green") if finding.usable else ("no      ", "dim")
        seen = "your own row" if row.library else f"seen on {row.verified}" if row.verified else "not yet seen on one"
        console.print(Text.assemble(name, here, row.hardware, (f" ({seen})", "dim")), soft_wrap=True)
        for line in _lines(row, finding):
            print(wrapped(f"    {line}", stream=sys.stdout, hang=6))


def _lines(row: Provider, finding: Finding) -> list[str]:
    """What it runs, or why not and what would mend it."""
    if not finding.usable:
        return [finding.reason, f"→ {finding.remedy}"]
    on = f" on {', '.join(finding.devices)}" if finding.devices else ""
    steady = [f"steady clocks: {row.hint}"] if row.hint else []
    return [f"runs {row.graph}{on}", f"passes are {row.passes}", *steady]
