"""Reads the answer's JSON Schema from a file of its own, with exact decimals."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from edgeguard.config.reader import Table


def read_schema_file(table: Table, *, folder: Path) -> dict[str, Any]:
    """The document that ``schema_file`` names, relative to ``folder``; problems are noted in ``table``."""
    named = table.text("schema_file")
    if "schema" in table:
        table.refuse("schema", "give schema or schema_file, not both")
    file = folder / named
    try:
        document = json.loads(file.read_bytes(), parse_float=Decimal)
    except OSError as error:
        table.refuse("schema_file", f"{file} cannot be read ({error.strerror})")
        return {}
    except ValueError as error:
        table.refuse("schema_file", f"{file} is not JSON: {error}")
        return {}
    if not isinstance(document, dict):
        table.refuse("schema_file", f"{file} is not a JSON object")
        return {}
    return document
