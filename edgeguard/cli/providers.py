"""``edgeguard providers``: what this machine can really run a model on, and what would mend the rest."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgeguard.engine.probe import Finding
    from edgeguard.engine.provider import Provider

_DESCRIPTION = """\
Tries every execution provider in a process of its own: is its package here, does its library load, is there a device,
and does a product of two matrices really run on it. Why one cannot be used comes with the command that would mend it.
A provider whose hardware we have not had says so: its row was written from its documentation.

The configuration chooses one ([model] provider = "…"); another one is never taken in its place.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "providers",
        help="list the execution providers: which are usable here, and what the others lack",
        description=_DESCRIPTION,
    )
    parser.add_argument("--json", action="store_true", help="print a list of {name, usable, reason, remedy, devices}")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.engine.probe import survey
    from edgeguard.engine.provider_table import PROVIDERS
    from edgeguard.plain import to_plain

    findings = survey(PROVIDERS)
    if arguments.json:
        print(json.dumps(to_plain(findings), indent=2))
    else:
        _show(PROVIDERS, findings)
    return 0


def _show(rows: tuple[Provider, ...], findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("provider", "here", "what it is for; what it runs, or why not and what would mend it"):
        table.add_column(heading)
    for row, finding in zip(rows, findings, strict=True):
        seen = f"seen on {row.verified}" if row.verified else "not yet seen on one"
        on = f" on {', '.join(finding.devices)}" if finding.devices else ""
        steady = [f"steady clocks: {row.hint}"] if row.hint else []
        works = [f"{row.graph}{on}", f"passes are {row.passes}", *steady]
        says, *then = works if finding.usable else [finding.reason, finding.remedy]
        lines = [f"{escape(row.hardware)} [dim]({escape(seen)})[/dim]", escape(says)]
        lines += [f"[dim]{escape(line)}[/dim]" for line in then]
        here = "[green]usable[/green]" if finding.usable else "[dim]no[/dim]"
        table.add_row(row.name, here, "\n".join(lines))
    Console(highlight=False).print(table)
