"""A flight's decisions as files that other programs read: one row of ``EXPORTS`` per kind of file.

Each takes the flight, the stretch of time and the file, and returns how many decisions went into it. A library that is
not there is a ``MissingExtraError``, a file that cannot be written a ``ConfigError``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from edgeguard.errors import ConfigError, MissingExtraError
from edgeguard.recorder.export_mcap import export_mcap
from edgeguard.recorder.flight import Flight
from edgeguard.recorder.table import columns

Export: TypeAlias = Callable[[Flight, int, int | None, Path], int]

ROWS_PER_GROUP = 20_000


def export_flight(flight: Flight, file: Path, *, from_ns: int = 0, to_ns: int | None = None) -> int:
    """Write ``file`` by its ending; how many decisions are in it."""
    export = EXPORTS.get(file.suffix)
    if export is None:
        raise ConfigError(f"{file}: unknown kind of file; name one that ends in {', '.join(EXPORTS)}")
    try:
        return export(flight, from_ns, to_ns, file)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror or error})") from error


def _export_csv(flight: Flight, from_ns: int, to_ns: int | None, file: Path) -> int:
    header, count = columns(flight.header), 0
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(column.name for column in header)
        for cycle in flight.cycles(from_ns=from_ns, to_ns=to_ns):
            writer.writerow(column.value(cycle) for column in header)
            count += 1
    return count


def _export_parquet(flight: Flight, from_ns: int, to_ns: int | None, file: Path) -> int:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(package="pyarrow", extra="log", purpose="a Parquet file") from error
    kinds = {"number": pyarrow.float64(), "integer": pyarrow.int64(), "text": pyarrow.string(), "flag": pyarrow.bool_()}
    header, count = columns(flight.header), 0
    about = {"edgeguard.config": flight.header.config_text, "edgeguard.created": flight.header.created}
    schema = pyarrow.schema([(column.name, kinds[column.kind]) for column in header], metadata=about)
    rows: list[dict[str, Any]] = []
    with parquet.ParquetWriter(file, schema) as writer:
        for cycle in flight.cycles(from_ns=from_ns, to_ns=to_ns):
            rows.append({column.name: column.value(cycle) for column in header})
            count += 1
            if len(rows) == ROWS_PER_GROUP:
                writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
                rows.clear()
        writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
    return count


EXPORTS: Mapping[str, Export] = MappingProxyType(
    {".mcap": export_mcap, ".csv": _export_csv, ".parquet": _export_parquet}
)
