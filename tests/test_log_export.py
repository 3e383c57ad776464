"""Exports of flights in which sensors have said what is no reading: other programs read them all the same."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from decimal import Decimal

import jsonschema
import pytest
from flights import record, rewrite, script
from mcap.reader import make_reader
from pyarrow import parquet

from edgeguard.cli.main import main
from edgeguard.recorder.record import FlightStep


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("said", "half a character: \ud83d"),
        ("front_m", 10**400),
        ("front_m", math.nan),
        ("front_m", Decimal("1e999")),
        ("front_m", Decimal("sNaN")),
    ],
)
def test_whatever_a_sensor_has_said_is_exported_and_can_be_read(tmp_path, field, value):
    def say(step: FlightStep) -> FlightStep:
        cycle, link = step.effects.record, step.inputs.link
        if link.echo is not None:
            echo = replace(link.echo, axes=dict.fromkeys(link.echo.axes, math.inf))
            step = replace(step, inputs=replace(step.inputs, link=replace(link, echo=echo)))
        if cycle is None or cycle.observation is None:
            return step
        observation = replace(cycle.observation, fields={**cycle.observation.fields, field: value})
        return replace(step, effects=replace(step.effects, record=replace(cycle, observation=observation)))

    log = record(script(tmp_path, duration_ms=1_500), tmp_path / "flight.log")
    odd = rewrite(log, tmp_path / "odd.log", say)
    for ending in ("csv", "parquet", "mcap"):
        assert main(["log", "export", str(odd), str(tmp_path / f"drive.{ending}")]) == 0
    with (tmp_path / "drive.csv").open(newline="", encoding="utf-8") as stream:
        said = [row[f"observation.{field}"] for row in csv.DictReader(stream)]
    assert set(said) == {"half a character: ?" if field == "said" else ""}
    parquet.read_table(tmp_path / "drive.parquet")
    with (tmp_path / "drive.mcap").open("rb") as stream:
        for schema, _, message in make_reader(stream).iter_messages():
            document = json.loads(message.data, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
            jsonschema.validate(document, json.loads(schema.data))
