"""``edgeguard log``: what was recorded is what is shown, counted and exported, whatever became of the file."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from black_box import BlackBox
from flights import SCENARIOS, record, script, steps_of
from mcap.reader import make_reader
from pyarrow import parquet

from edgeguard.cli.main import main
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import FlightLogError
from edgeguard.recorder.exposition import families
from edgeguard.recorder.flight import find_flights, glance, last_flight
from edgeguard.recorder.follow import FlightFollower
from edgeguard.recorder.frame import MARK
from edgeguard.recorder.log import Flaw, FlightWriter, read_flight
from edgeguard.recorder.metrics import FlightMetrics
from edgeguard.recorder.record import encode_step
from edgeguard.recorder.statistics import percentiles, statistics_of
from edgeguard.recorder.table import columns
from edgeguard.simulation.scenario import read_scenario
from edgeguard.types import CycleRecord, Event

STOPPED = """
[[event]]
at_ms = 1_500
operator = "stop"
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """Three seconds of a drive that an operator ends."""
    folder = tmp_path_factory.mktemp("drive")
    return record(script(folder, more=STOPPED, duration_ms=3_000), folder / "flight.log")


@pytest.fixture(scope="module")
def decisions(log) -> list[CycleRecord]:
    return [step.effects.record for step in steps_of(read_flight(log)) if step.effects.record is not None]


def printed(capsys, *argv: str) -> str:
    assert main(["log", *argv]) == 0
    return capsys.readouterr().out


# What is found.


def test_a_glance_knows_where_a_decision_is_without_reading_the_step(log):
    for step in steps_of(read_flight(log)):
        seen = glance(encode_step(step))
        assert (seen.number, seen.now_ns) == (step.number, step.now_ns)
        assert seen.eventful is (step.effects.record is not None or bool(step.effects.events))


def test_every_start_is_found_and_a_rotated_file_belongs_to_its_start(log, tmp_path):
    entries = list(read_flight(log))
    steps = steps_of(entries)
    blocks = [index for index, step in enumerate(steps) if step.before is not None]
    for name, part in (("flight.log.1", steps[: blocks[1]]), ("flight.log", steps[blocks[1] :])):
        writer = FlightWriter(tmp_path / name, header=entries[0])
        for step in part:
            writer.append(encode_step(step), begins_block=step.before is not None)
        writer.close()
    (flight,) = find_flights(tmp_path)
    assert [step.number for step in flight.glances()] == [step.number for step in steps]
    assert list(flight.entries())[1:] == steps


def test_what_is_missing_between_two_files_is_told(log, tmp_path):
    entries = list(read_flight(log))
    steps = steps_of(entries)
    blocks = [index for index, step in enumerate(steps) if step.before is not None]
    for name, part in (("flight.log.1", steps[: blocks[1] - 5]), ("flight.log", steps[blocks[1] :])):
        writer = FlightWriter(tmp_path / name, header=entries[0])
        for step in part:
            writer.append(encode_step(step), begins_block=step.before is not None)
        writer.close()
    flaws = [one.detail for one in last_flight(tmp_path).glances() if isinstance(one, Flaw)]
    assert flaws == [f"steps {blocks[1] - 4} to {blocks[1]} are missing"]


def test_of_several_starts_the_last_is_meant_and_an_earlier_one_can_be_named(log, tmp_path, decisions):
    twice = tmp_path / "twice.log"
    short = record(script(tmp_path, duration_ms=500), tmp_path / "short.log")
    twice.write_bytes(log.read_bytes() + short.read_bytes())
    assert len(list(last_flight(twice).cycles())) < len(decisions)
    assert [one.record for one in last_flight(twice, back=1).cycles()] == decisions
    with pytest.raises(FlightLogError, match="holds 2 starts"):
        last_flight(twice, back=2)


def test_a_recorder_that_was_replaced_has_not_begun_another_start(tmp_path):
    box = BlackBox(tmp_path / "flight.log")
    box.note_until(lambda: box.pid is not None)
    first = box.pid

    os.kill(first, signal.SIGKILL)
    box.note_until(lambda: box.pid != first)
    box.recorder.close()
    assert len(find_flights(tmp_path)) == 1


# What is shown.


def test_show_prints_one_line_per_decision_and_one_per_event(log, capsys, decisions):
    lines = printed(capsys, "show", str(log)).splitlines()
    numbered = [line for line in lines if line.split()[1].isdecimal()]
    assert [int(line.split()[1]) for line in numbered] == [one.cycle for one in decisions]
    assert any("operator stop" in line for line in lines)


def test_show_takes_a_stretch_and_one_cycle_in_full(log, capsys, decisions):
    stretch = printed(capsys, "show", str(log), "--from", "1", "--to", "2", "--json").splitlines()
    assert all(1 <= json.loads(line)["at_s"] <= 2 for line in stretch)
    assert len(stretch) == 5
    whole = json.loads(printed(capsys, "show", str(log), "--cycle", "3"))
    assert whole["record"]["cycle"] == 3
    assert whole["record"]["budget"]["deadline_ns"] == decisions[2].budget.deadline_ns


def test_what_no_decision_came_after_is_shown_and_a_stretch_without_one_says_so(tmp_path, capsys):
    """The operator stops the robot between two decisions."""
    between = STOPPED.replace("1_500", "1_550")
    log = str(record(script(tmp_path, more=between, duration_ms=1_580), tmp_path / "flight.log"))
    assert "operator stop" in printed(capsys, "show", log).splitlines()[-1]
    lines = printed(capsys, "show", log, "--from", "1.54").splitlines()
    assert any(line.startswith("     1.550 ") and "operator stop" in line for line in lines)
    assert lines[-1].endswith("no decision was made there; the last event says why")
    (whole,) = map(json.loads, printed(capsys, "show", log, "--from", "1.54", "--json").splitlines())
    assert whole["record"] is None
    assert "operator stop" in str(whole["events"])


def test_show_draws_a_stretch(log, capsys, tmp_path):
    printed(capsys, "show", str(log), "--plot", str(tmp_path / "drive.png"))
    assert (tmp_path / "drive.png").read_bytes()[1:4] == b"PNG"


def test_a_stretch_without_a_decision_and_a_file_that_is_no_log_are_said(log, tmp_path, capsys):
    assert main(["log", "show", str(log), "--from", "100"]) == 15
    assert "nothing happened there" in capsys.readouterr().err
    (tmp_path / "text.log").write_text("not a log")
    assert main(["log", "stats", str(tmp_path / "text.log")]) == 15
    assert main(["log", "tail", str(tmp_path / "gone.log")]) == 15
    assert main(["log", "stats", str(tmp_path)]) == 15
    assert "state directory" in capsys.readouterr().err


# What is counted.


def test_stats_counts_what_is_in_the_log(log, capsys, decisions):
    found = json.loads(printed(capsys, "stats", str(log), "--json"))
    assert found["decisions"] == len(decisions) == sum(found["sources"].values())
    assert found["steps"] == len(steps_of(read_flight(log)))
    assert found["causes"]["operator stop"] == sum(
        "operator stop" in [cause.value for cause in one.decision.causes] for one in decisions
    )
    assert found["bytes"] == log.stat().st_size
    assert "operator stop" in printed(capsys, "stats", str(log))


def test_the_plan_of_every_answer_is_in_the_record_with_its_bound_and_the_budget(tmp_path, capsys):
    log = record(read_scenario(SCENARIOS / "less_is_asked.toml"), tmp_path / "flight.log")
    stats = json.loads(printed(capsys, "stats", str(log), "--json"))
    assert list(stats["plans"]) == ["full", "brief", "go or stop"]
    assert "plans      full " in printed(capsys, "stats", str(log))
    cycles = {one.record.cycle: one.record for one in last_flight(log).cycles()}
    brief = next(one for one in cycles.values() if one.answer is not None and one.answer.rung == "brief")
    assert (brief.answer.bound_ns, brief.budget.bound_ns) == (140 * NS_PER_MS, 80 * NS_PER_MS), "its own, and the least"
    whole = json.loads(printed(capsys, "show", str(log), "--cycle", str(brief.cycle)))["record"]
    assert whole["answer"]["rung"] == "brief"
    assert whole["budget"].keys() == {"deadline_ns", "age_ns", "wire_ns", "reserve_ns", "bound_ns"}
    assert "brief: speed=" in printed(capsys, "show", str(log))
    metrics = FlightMetrics(deadline_ns=200 * NS_PER_MS)
    for step in steps_of(read_flight(log)):
        metrics.note(encode_step(step))
    assert metrics.plans == stats["plans"]
    names = {family.name: family for family in families(metrics, info={}, model="", steps={})}
    assert {one.labels["plan"]: one.value for one in names["edgeguard_answers"].samples} == stats["plans"]
    printed(capsys, "show", str(log), "--plot", str(tmp_path / "drive.png"))


def test_stats_tells_damage_and_a_torn_tail(log, tmp_path):
    data = bytearray(log.read_bytes())
    data[data.index(MARK, len(data) // 2) + 12] ^= 1
    hurt = tmp_path / "hurt.log"
    hurt.write_bytes(bytes(data[:-3]))
    details = [flaw.detail for flaw in statistics_of(last_flight(hurt)).flaws]
    assert any("damaged" in one for one in details)
    assert "never finished" in details[-1]


def test_percentiles_are_values_that_were_seen():
    assert percentiles([]) == {}
    assert percentiles([3.0]) == {"p50": 3.0, "p90": 3.0, "p99": 3.0, "p99.9": 3.0, "max": 3.0}
    assert percentiles([float(one) for one in range(1, 1001)])["p99"] == 990.0


# What other programs read.


def exported(capsys, log: Path, file: Path) -> Path:
    printed(capsys, "export", str(log), str(file))
    return file


def test_csv_is_read_back_by_the_standard_library(log, tmp_path, capsys, decisions):
    with exported(capsys, log, tmp_path / "drive.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["cycle"]) for row in rows] == [one.cycle for one in decisions]
    for row, one in zip(rows, decisions, strict=True):
        assert row["source"] == one.decision.source.value
        assert float(row["axis.linear"]) == pytest.approx(one.decision.set_point.axes["linear"])
        assert row["observation.front_m"] == "5.0"


def test_parquet_is_read_back_by_pyarrow_with_types(log, tmp_path, capsys, decisions):
    table = parquet.read_table(exported(capsys, log, tmp_path / "drive.parquet"))
    assert table.num_rows == len(decisions)
    kinds = {field.name: str(field.type) for field in table.schema}
    assert (kinds["cycle"], kinds["axis.linear"], kinds["shadow"], kinds["causes"]) == (
        "int64",
        "double",
        "bool",
        "string",
    )
    assert table["cycle"].to_pylist() == [one.cycle for one in decisions]
    assert table["answer.grip"].to_pylist()[-1] is None or isinstance(table["answer.grip"].to_pylist()[-1], bool)


def test_mcap_is_read_back_by_its_own_reader_and_its_messages_keep_their_schemas(log, tmp_path, capsys, decisions):
    with exported(capsys, log, tmp_path / "drive.mcap").open("rb") as stream:
        reader = make_reader(stream)
        counts: dict[str, int] = {}
        last_ns = 0
        for schema, channel, message in reader.iter_messages():
            counts[channel.topic] = counts.get(channel.topic, 0) + 1
            assert message.log_time >= last_ns
            last_ns = message.log_time
            jsonschema.validate(json.loads(message.data), json.loads(schema.data))
        (attachment,) = reader.iter_attachments()
    steps = steps_of(read_flight(log))
    assert counts == {
        "/edgeguard/decision": len(decisions),
        "/edgeguard/event": sum(len(step.effects.events) for step in steps),
        "/edgeguard/motion": len(steps),
    }
    assert b"[[axis]]" in attachment.data


def test_an_ending_that_nobody_writes_and_a_place_that_cannot_be_written_are_said(log, tmp_path, capsys):
    assert main(["log", "export", str(log), str(tmp_path / "drive.xlsx")]) == 2
    assert ".parquet" in capsys.readouterr().err
    assert main(["log", "export", str(log), str(tmp_path / "gone" / "drive.csv")]) == 2


def test_columns_have_names_of_their_own(log):
    names = [column.name for column in columns(last_flight(log).header)]
    assert len(names) == len(set(names))
    assert {"observation.said", "answer.speed", "axis.linear"} <= set(names)


# What is followed.


def test_a_follower_tells_what_comes_also_across_a_rotation(log, tmp_path, decisions):
    entries = list(read_flight(log))
    steps = steps_of(entries)
    blocks = [index for index, step in enumerate(steps) if step.before is not None]
    file = tmp_path / "flight.log"
    told: list[CycleRecord | Event] = []
    writer = FlightWriter(file, header=entries[0])
    follower = None
    for index, step in enumerate(steps):
        if index == blocks[1]:
            writer.close()
            file.replace(tmp_path / "flight.log.1")
            writer = FlightWriter(file, header=entries[0])
        writer.append(encode_step(step), begins_block=step.before is not None)
        follower = follower or FlightFollower(file)
        if index % 7 == 0:
            told += follower.read()
    told += follower.read()
    follower.close()
    writer.close()
    assert [one for one in told if isinstance(one, CycleRecord)] == decisions


def test_tail_prints_the_last_decisions_and_follows(log, tmp_path, capsys, decisions):
    lines = printed(capsys, "tail", str(log), "--no-follow").splitlines()
    assert sum(line.split()[1].isdecimal() for line in lines) == min(10, len(decisions))
    file = tmp_path / "flight.log"
    file.write_bytes(log.read_bytes())
    argv = [sys.executable, "-m", "edgeguard", "log", "tail", str(file)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as tail:
        for _ in lines:
            tail.stdout.readline()
        with file.open("ab") as stream:
            stream.write(log.read_bytes())
        told = (line.split() for line in tail.stdout)
        assert next(int(words[1]) for words in told if words[1].isdecimal()) == decisions[0].cycle
        tail.terminate()
