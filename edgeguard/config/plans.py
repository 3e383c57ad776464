"""``[[plan]]``: the ladder of plans, from best to cheapest. A rung says what it asks otherwise than ``[model]``,
``[prompt]`` and ``[answer]`` do: fewer examples, another text, a smaller schema, another model.

Whether a rung's answers are some of the whole schema's, so that every axis finds its value, is for who knows schemas
(``edgeguard.guard.rungs``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from edgeguard.config.model import read_plan_model
from edgeguard.config.reader import REQUIRED, Table
from edgeguard.config.sections import Prompt, Rung

Schema: TypeAlias = Mapping[str, Any]
"""A JSON Schema with exact decimals."""

NO_SCHEMAS: Mapping[str, Schema] = MappingProxyType({})


def read_plans(
    tables: Sequence[Table], *, whole: Rung, folder: Path, recorded: Mapping[str, Schema] = NO_SCHEMAS
) -> list[Rung]:
    """The rungs in their order, each as ``whole`` but for what it says itself. ``recorded`` schemas, by name, need no
    file.
    """
    rungs: list[Rung] = []
    for table in tables:
        rung = _read_plan(table, whole=whole, folder=folder, recorded=recorded)
        if not rung.name or any(rung.name == other.name for other in rungs):
            table.refuse("name", f"{rung.name!r} must be a name of its own: records and profiles name a plan by it")
        rungs.append(rung)
    return rungs


def _read_plan(table: Table, *, whole: Rung, folder: Path, recorded: Mapping[str, Schema]) -> Rung:
    name, prompt = table.text("name"), whole.prompt
    count = table.integer("examples", default=len(prompt.examples), low=0, high=len(prompt.examples))
    rung = Rung(
        name=name,
        model=read_plan_model(table, folder=folder, model=whole.model),
        prompt=Prompt(
            system=table.text("system", default=prompt.system),
            user=table.text("user", default=prompt.user),
            examples=prompt.examples[:count],
        ),
        schema=read_schema_of(table, folder=folder, recorded=recorded.get(name), default=whole.schema),
    )
    table.close()
    return rung


def read_schema_of(table: Table, *, folder: Path, recorded: Schema | None, default: Any = REQUIRED) -> Schema:
    """What ``schema`` or ``schema_file`` says, unless it is known from a record."""
    if recorded is not None:
        for key in ("schema", "schema_file"):
            table.raw(key, default=None, kind=object)
        return dict(recorded)
    if table.text("schema_file", default=None) is not None:
        from edgeguard.config.schema_file import read_schema_file

        return read_schema_file(table, folder=folder)
    return dict(table.raw("schema", default=default, name="a JSON Schema written as a table (or use schema_file)"))
