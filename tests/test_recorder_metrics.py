"""Metrics of a flight: what is counted is what was recorded, and Prometheus' own parser reads it."""

from __future__ import annotations

import math
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from flights import record, script, steps_of
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from edgeguard.clock import NS_PER_S, FakeClock
from edgeguard.config import load_config
from edgeguard.config.sections import Metrics
from edgeguard.errors import ConfigError
from edgeguard.recorder.log import read_flight
from edgeguard.recorder.metrics import DEADLINE_FRACTIONS, FlightMetrics, Histogram
from edgeguard.recorder.metrics_output import LOOPBACK, MetricsOutput
from edgeguard.recorder.record import FlightStep, encode_step
from edgeguard.simulation.simulation import flight_header
from edgeguard.types import Pass, Source


@pytest.fixture(scope="module")
def flight(tmp_path_factory):
    """The header and the steps of a short drive."""
    folder = tmp_path_factory.mktemp("flight")
    scenario = script(folder, duration_ms=3_000)
    entries = list(read_flight(record(scenario, folder / "flight.log")))
    return entries[0], [sent(step) for step in steps_of(entries)]


def sent(step: FlightStep) -> FlightStep:
    """With what a real wire and a real worker add: 150 ms from capture to the last byte, two passes an answer."""
    passes = (Pass(k=20, p=300, elapsed_ns=30_000_000), Pass(k=4, p=320, elapsed_ns=12_000_000))
    answers = tuple(replace(answer, passes=passes, tokenise_ns=1_000_000) for answer in step.inputs.answers)
    step = replace(step, inputs=replace(step.inputs, answers=answers))
    record = step.effects.record
    if record is None or record.observation is None:
        return step
    on_wire_ns = record.observation.captured_ns + 150_000_000
    return replace(step, effects=replace(step.effects, record=replace(record, on_wire_ns=on_wire_ns)))


def published(flight, folder: Path, **where) -> str:
    header, steps = flight
    output = MetricsOutput(
        Metrics(**{"textfile": folder / "edgeguard.prom", "http_port": None, **where}), header=header, clock=FakeClock()
    )
    for step in steps:
        output.note(encode_step(step))
    output.publish(steps_written=len(steps), steps_lost=2)
    assert output.problem is None
    return (folder / "edgeguard.prom").read_text()


def samples(text: str) -> dict[tuple[str, frozenset], float]:
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_the_textfile_says_what_the_flight_was_and_prometheus_reads_it(flight, tmp_path):
    read = samples(published(flight, tmp_path))
    decisions = [step.effects.record for step in flight[1] if step.effects.record is not None]
    by_model = sum(one.decision.source is Source.MODEL for one in decisions)
    assert read["edgeguard_decisions_total", frozenset({("source", "model"), ("mode", "armed")})] == by_model > 0
    assert read["edgeguard_mode", frozenset({("mode", "armed")})] == 1
    assert read["edgeguard_mode", frozenset({("mode", "latched")})] == 0
    assert read["edgeguard_deadline_seconds", frozenset()] == 0.2
    assert read["edgeguard_command_seconds_count", frozenset()] == len(decisions)
    assert read["edgeguard_command_seconds_bucket", frozenset({("le", "0.16")})] == len(decisions)
    assert read["edgeguard_command_seconds_bucket", frozenset({("le", "0.14")})] == 0
    assert read["edgeguard_recorded_steps_total", frozenset({("what", "lost")})] == 2
    first_tokens = [value for (name, _), value in read.items() if name.endswith("time_to_first_token_seconds_count")]
    answers = sum(len(step.inputs.answers) for step in flight[1])
    assert first_tokens == [answers]
    per_token = {name: value for (name, _), value in read.items() if "time_per_output_token" in name}
    assert per_token["gen_ai_server_time_per_output_token_seconds_sum"] == pytest.approx(answers * 0.003)


def test_the_deadline_is_the_edge_of_a_bucket():
    assert 1.0 in DEADLINE_FRACTIONS
    assert 0.2 in FlightMetrics(deadline_ns=NS_PER_S // 5).command.bounds


def test_the_file_is_replaced_as_a_whole_and_readable_by_everybody(flight, tmp_path):
    published(flight, tmp_path)
    assert (tmp_path / "edgeguard.prom").stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["edgeguard.prom"]


def test_a_folder_that_is_not_there_is_said_and_not_raised(flight, tmp_path):
    output = MetricsOutput(
        Metrics(textfile=tmp_path / "gone" / "edgeguard.prom", http_port=None), header=flight[0], clock=FakeClock()
    )
    output.publish(steps_written=0, steps_lost=0)
    assert "gone/edgeguard.prom: No such file" in output.problem


def test_http_is_served_on_the_loopback_interface_and_a_port_in_use_is_said(flight, tmp_path):
    with urllib.request.socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port = free.getsockname()[1]
        free.listen()
        busy = MetricsOutput(Metrics(textfile=None, http_port=port), header=flight[0], clock=FakeClock())
        busy.publish(steps_written=0, steps_lost=0)
        assert "Address already in use" in busy.problem
    text = published(flight, tmp_path, http_port=port)
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics") as answer:
        assert samples(answer.read().decode()) == samples(text)


def test_it_is_published_every_few_seconds_and_not_at_every_sync(flight, tmp_path):
    clock, file = FakeClock(), tmp_path / "edgeguard.prom"
    output = MetricsOutput(Metrics(textfile=file, http_port=None), header=flight[0], clock=clock)
    output.publish(steps_written=0, steps_lost=0)
    file.unlink()
    output.publish(steps_written=0, steps_lost=0)
    assert not file.exists()
    clock.advance_ns(3 * NS_PER_S)
    output.publish(steps_written=0, steps_lost=0)
    assert file.exists()


@given(st.lists(st.floats(0, 3), max_size=30))
@settings(max_examples=50, deadline=None)
def test_a_histogram_counts_each_value_up_to_its_edges(values):
    histogram = Histogram((0.1, 1.0, 2.0))
    for value in values:
        histogram.note(value)
    for edge, count in histogram.cumulative():
        assert count == sum(value <= edge for value in values)
    assert histogram.cumulative()[-1] == (math.inf, len(values))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[metrics]\ntextfile = "metrics.txt"\n', "must end in .prom"),
        ("[record]\nfiles = 1\n", "record.files: 1 is out of bounds"),
    ],
)
def test_a_wrong_key_is_said(tmp_path, text, said):
    config = tmp_path / "robot.toml"
    config.write_text(text + (Path(__file__).parent / "scenarios" / "robot.toml").read_text())
    with pytest.raises(ConfigError, match=said):
        load_config(config)


def test_the_header_of_a_flight_knows_where_metrics_go(tmp_path):
    config = tmp_path / "robot.toml"
    scenario = (Path(__file__).parent / "scenarios" / "robot.toml").read_text()
    config.write_text('[metrics]\ntextfile = "edgeguard.prom"\n' + scenario)
    assert flight_header(load_config(config)).config().metrics.textfile == tmp_path / "edgeguard.prom"
