"""Observations to measure with: as varied as the robot's own, and the same ones in every run.

Numbers lie anywhere in their field's range; without one, between the values of the few-shot examples. Texts are the
field's own examples and those of the few-shot examples. A field that none of these describes has one value. Seeded;
knows no clock.

A robot's next observation hardly differs from its last, and that is what drafts live on. So observations may come in
scenes: within one, only a single field changes from each to the next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice

from edgeguard.config import Config
from edgeguard.config.plant_sections import FieldSpec
from edgeguard.types import Value

SEED = 1


def draw_fields(config: Config, *, seed: int = SEED, scene: int = 1) -> Iterator[dict[str, Value]]:
    """Endlessly, the fields of one observation after another. A scene has up to ``scene`` of them (1: all are new)."""
    draw = random.Random(seed)
    known = {spec.name: _example_values(config, spec) for spec in config.fields}
    while True:
        fields = {spec.name: _value(spec, known[spec.name], draw=draw) for spec in config.fields}
        yield fields
        for _ in range(draw.randrange(scene)):
            spec = draw.choice(config.fields)
            fields = {**fields, spec.name: _value(spec, known[spec.name], draw=draw)}
            yield fields


def steady_fields(config: Config, *, seed: int) -> Iterator[dict[str, Value]]:
    """Observations whose numbers change and whose words and flags do not."""
    first, *_ = islice(draw_fields(config), 1)
    numbers = {spec.name for spec in config.fields if spec.kind == "number"}
    for fields in draw_fields(config, seed=seed):
        yield {name: value if name in numbers else first[name] for name, value in fields.items()}


def _example_values(config: Config, spec: FieldSpec) -> list[Value]:
    """What the examples have in this field, but not what stops the robot before the model sees it."""
    values = [*spec.examples, *(example.observation.get(spec.name) for example in config.prompt.examples)]
    return [value for value in values if value is not None and str(value).casefold() not in spec.stop_words]


def _value(spec: FieldSpec, known: Sequence[Value], *, draw: random.Random) -> Value:
    if spec.kind == "flag":
        return draw.random() < 0.5
    if spec.kind == "text":
        return draw.choice(known) if known else spec.name[: spec.max_chars]
    numbers = [float(value) for value in known if isinstance(value, (int, float, Decimal))] or [0.0]
    low = min(numbers) if spec.low is None else spec.low
    high = max(numbers) if spec.high is None else spec.high
    return round(draw.uniform(low, max(low, high)), spec.decimals)
