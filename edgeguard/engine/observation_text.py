"""The robot's observation as the model reads it: the template, each place filled in the format of its ``[[field]]``.

A number has the field's ``decimals``, a flag is yes or no, a text has single spaces and no line breaks (so that it
cannot look like a new line of the prompt), and no reading is ``none``. A text that is too long is refused, not cut:
what is cut off may be the word that mattered. Knows nothing of tokens.

Raises ``ObservationError`` naming the field and the value.
"""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from decimal import Decimal

from edgeguard.config.plant_sections import FieldSpec
from edgeguard.errors import ConfigError, ObservationError
from edgeguard.types import Value

NO_READING = "none"
_WIDEST_NUMBER = 1e6
"""How wide a number without bounds is taken to be when the longest observation is estimated."""


class ObservationText:
    """A user template with ``{field}`` places."""

    def __init__(self, *, template: str, fields: Sequence[FieldSpec]) -> None:
        specs = {spec.name: spec for spec in fields}
        self._parts: list[tuple[str, FieldSpec | None]] = []
        try:
            for literal, name, _, _ in string.Formatter().parse(template):
                self._parts.append((literal, None if name is None else specs[name]))
        except (ValueError, KeyError) as error:
            raise ConfigError(f"prompt.user: {error}: write {{field}} with the name of a [[field]]") from error
        self.places = tuple(spec for _, spec in self._parts if spec is not None)

    def fill(self, values: Mapping[str, Value]) -> str:
        """The template with every place filled."""
        return self.fill_texts({spec.name: format_value(spec, values.get(spec.name)) for spec in self.places})

    def fill_texts(self, texts: Mapping[str, str]) -> str:
        """Like ``fill``, with texts that are formatted already."""
        return "".join(literal + ("" if spec is None else texts[spec.name]) for literal, spec in self._parts)


def format_value(spec: FieldSpec, value: Value) -> str:
    """The text of one field's value."""
    if value is None:
        return NO_READING
    if spec.kind == "flag" and isinstance(value, bool):
        return "yes" if value else "no"
    if spec.kind == "text" and isinstance(value, str):
        text = " ".join(value.split())
        if len(text) > spec.max_chars:
            raise ObservationError(
                f"field {spec.name!r} has {len(text)} characters; at most {spec.max_chars} are read (max_chars)"
            )
        return text
    if spec.kind == "number" and isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ObservationError(f"field {spec.name!r} is {value}, which is no reading")
        text = f"{value:.{spec.decimals}f}"
        return text.removeprefix("-") if float(text) == 0 else text  # no minus zero
    raise ObservationError(f"field {spec.name!r} is {value!r}, which is no {spec.kind}")


def longest_text(spec: FieldSpec) -> str:
    """The longest text of the field, of digits: to most tokenizers the dearest characters, a token each."""
    if spec.kind == "text":
        return "0" * spec.max_chars
    if spec.kind == "flag":
        return "yes"
    ends = [end if end is not None else _WIDEST_NUMBER for end in (spec.low, spec.high)]
    return max((format_value(spec, end) for end in ends), key=len)


def first_texts(spec: FieldSpec) -> list[str]:
    """Texts of the field that begin in every way that matters to a tokenizer."""
    if spec.kind == "text":
        return [NO_READING, "", *(f"{start}o" for start in "aZ0-.,:;!?'\"({[<|#$/\\é中😀")]
    if spec.kind == "flag":
        return [NO_READING, "yes", "no"]
    signs = [""] if spec.low is not None and spec.low >= 0 else ["", "-"]
    return [NO_READING, *(f"{sign}{digit}" for sign in signs for digit in range(10))]
