"""``edgeguard causes``: every reason code that the guard may give, what it is worth, when it clears, and what to do."""

from __future__ import annotations

import argparse
import json

from edgeguard.guard.causes import TABLE, Row

_DESCRIPTION = """\
The reason codes of decisions, events and status. The grade orders severity; the worst cause that holds decides which of
the plant's actions is taken ([guard] actions). What latches is ended by the operator's re-arm only, restarts included.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "causes",
        help="list the guard's reason codes: grade, when each clears, what to do",
        description=_DESCRIPTION,
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="as the README has it")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print(json.dumps({cause.value: _plain(row) for cause, row in TABLE.items()}, indent=2))
    elif arguments.markdown:
        print(markdown())
    else:
        _show()
    return 0


def markdown() -> str:
    """The table of the README."""
    lines = ["| cause | grade | clears | what to do |", "|---|---|---|---|"]
    for cause, row in TABLE.items():
        lines.append(f"| `{cause.value}` | {row.grade.name.lower()} | {row.clear.value} | {row.remedy} |")
    return "\n".join(lines)


def _plain(row: Row) -> dict[str, object]:
    return {
        "grade": row.grade.name.lower(),
        "clears": row.clear.value,
        "latches": row.latches,
        "counts_as_miss": row.drains,
        "remedy": row.remedy,
    }


def _show() -> None:
    from rich.table import Table

    from edgeguard.cli.console import Console

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("cause", "grade", "clears", "what to do"):
        table.add_column(heading)
    for cause, row in TABLE.items():
        table.add_row(cause.value, row.grade.name.lower(), row.clear.value, row.remedy)
    Console().print(table)
