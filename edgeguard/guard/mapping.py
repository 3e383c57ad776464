"""From the answer's words to the plant's axes: a number as it is, or an enum's value through the axis' table; perhaps
multiplied by another one of these.

Float32 is what a frame carries, so every value is rounded to it here, before anything judges it; a limit, too, means
its nearest float32, or a speed of 0.1 would exceed a limit of 0.1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeguard.answer import Field, Grid, Scalar
from edgeguard.answer.field import spell
from edgeguard.config.plant_sections import Axis, AxisSource
from edgeguard.errors import ConfigError

_FLOAT32 = struct.Struct("<f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where one axis finds its value in a checked answer."""

    field: Field
    table: Mapping[str, float] | None
    times: Source | None = None

    def read(self, values: Mapping[str, Scalar]) -> float:
        """The axis' target in its unit."""
        value = values[self.field.name]
        if self.table is not None:
            number = self.table[value if isinstance(value, str) else self.field.text(value)]
        else:
            number = float(value)  # type: ignore[arg-type]  # ``source_of`` has refused what is no number
        return as_float32(number if self.times is None else number * self.times.read(values))


def value_key(value: Scalar) -> str:
    """How a value of the answer is written as a key of ``source.values``: a text as it is, else its JSON."""
    return value if isinstance(value, str) else spell(value)


def source_of(axis: Axis, fields: Sequence[Field]) -> Source:
    """The axis' source among the answer's fields; ``ConfigError`` when some answer would leave it without a number."""
    return _source(axis.source, fields, where=f"axis {axis.name!r}.source")


def _source(source: AxisSource, fields: Sequence[Field], *, where: str) -> Source:
    field = next((one for one in fields if one.name == source.field), None)
    if field is None:
        raise ConfigError(f"{where}: the answer has no field {source.field!r}")
    table = source.values
    for value in () if table is None and isinstance(field, Grid) else field:
        if table is None and (isinstance(value, (bool, str)) or value is None):
            raise ConfigError(f"{where}: {value_key(value)!r} is no number; give values = {{ … = number }}")
        if table is not None and value_key(value) not in table:
            raise ConfigError(f"{where}.values: no number for {value_key(value)!r}, which the answer may say")
    return Source(
        field=field,
        table=None if table is None else {key: as_float32(at) for key, at in table.items()},
        times=None if source.times is None else _source(source.times, fields, where=f"{where}.times"),
    )


def as_float32(value: float) -> float:
    """The nearest float32; what is too large for one becomes infinite, and NaN stays."""
    try:
        [rounded] = _FLOAT32.unpack(_FLOAT32.pack(value))
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded  # type: ignore[no-any-return]
