"""``[[plan]]``: the ladder of plans, from best to cheapest. A rung says what it asks otherwise than ``[prompt]`` and
``[answer]`` do: fewer examples, another text, a smaller schema. All rungs are of one model.

Whether a rung's answers are some of the whole schema's, so that every axis finds its value, is for who knows schemas
(``edgeguard.guard.rungs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeguard.config.reader import Table
from edgeguard.config.sections import Prompt, Rung


def read_plans(tables: list[Table], *, prompt: Prompt, schema: Mapping[str, Any]) -> tuple[Rung, ...]:
    """The rungs in their order; none: one unnamed plan, which is ``[prompt]`` and ``[answer]`` as they are."""
    rungs: list[Rung] = []
    for table in tables:
        rung = _read_plan(table, prompt=prompt, schema=schema)
        if not rung.name or any(rung.name == other.name for other in rungs):
            table.refuse("name", f"{rung.name!r} must be a name of its own: records and profiles name a plan by it")
        rungs.append(rung)
    return tuple(rungs)


def _read_plan(table: Table, *, prompt: Prompt, schema: Mapping[str, Any]) -> Rung:
    if "folder" in table:
        table.raw("folder", kind=object)
        table.refuse("folder", "a plan is another question to the model of [model], not another model")
    count = table.integer("examples", default=len(prompt.examples), low=0, high=len(prompt.examples))
    rung = Rung(
        name=table.text("name"),
        prompt=Prompt(
            system=table.text("system", default=prompt.system),
            user=table.text("user", default=prompt.user),
            examples=prompt.examples[:count],
        ),
        schema=table.raw("schema", default=schema, name="a JSON Schema written as a table"),
    )
    table.close()
    return rung
