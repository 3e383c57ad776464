"""Replay: the same inputs give the same decisions, what does not is named, and another configuration may be asked."""

from __future__ import annotations

import argparse
import dataclasses
import json

import pytest
from flights import record, rewrite, robot_toml, script, steps_of

from edgeguard.cli import replay as command
from edgeguard.config import load_config
from edgeguard.errors import ConfigError, FlightLogError
from edgeguard.recorder.frame import FrameReader
from edgeguard.recorder.log import FlightWriter, read_flight
from edgeguard.recorder.record import encode_step
from edgeguard.recorder.replay import replay
from edgeguard.recorder.second_opinion import second_opinion
from edgeguard.types import Cause, Source

LATE_FROM_1500 = """
[[event]]
at_ms = 1500
latency_ms = 230
"""


@pytest.fixture
def flight(tmp_path):
    """Two seconds, in the last quarter of which every answer is late."""
    return record(script(tmp_path, more=LATE_FROM_1500), tmp_path / "flight.log")


def other(folder, **replaced):
    """Another configuration of the same robot."""
    file = folder / "other.toml"
    file.write_text(robot_toml(**replaced))
    return load_config(file)


def test_every_step_comes_out_as_it_was_recorded(flight):
    outcome = replay(read_flight(flight))
    assert outcome.identical
    assert outcome.tally.starts == 1
    assert outcome.tally.steps == len(steps_of(read_flight(flight)))
    assert outcome.tally.decisions == 10
    assert outcome.tally.skipped == 0
    assert outcome.tally.duration_ns == pytest.approx(2e9, rel=0.02)


def test_replay_needs_no_file_beside_the_log(flight, tmp_path):
    (tmp_path / "robot.toml").unlink()
    assert replay(read_flight(flight)).identical


def test_replay_starts_wherever_a_state_is(flight, tmp_path):
    """Here the first block is gone, as when the log was rotated."""
    cut = rewrite(flight, tmp_path / "cut.log", lambda step: step if step.number > 64 else None)
    outcome = replay(read_flight(cut))
    assert outcome.identical
    assert outcome.tally.steps == len(steps_of(read_flight(flight))) - 64


def test_behind_a_gap_it_waits_for_the_next_state(flight, tmp_path):
    gap = rewrite(flight, tmp_path / "gap.log", lambda step: step if step.number != 10 else None)
    outcome = replay(read_flight(gap))
    assert outcome.identical
    assert [flaw.detail for flaw in outcome.tally.flaws] == ["steps 10 to 10 are missing"]
    assert outcome.tally.skipped == 64 - 10


def test_two_starts_in_one_file_are_two_flights(flight, tmp_path):
    twice = record(script(tmp_path, robot=robot_toml(dwell_ms="500")), flight)
    outcome = replay(read_flight(twice))
    assert outcome.identical
    assert outcome.tally.starts == 2


def test_a_decision_that_was_not_the_cores_is_found(flight, tmp_path):
    def forge(step):
        record = step.effects.record
        if record is None or record.decision.source is Source.MODEL:
            return step
        decision = dataclasses.replace(record.decision, source=Source.MODEL)
        forged = dataclasses.replace(step.effects, record=dataclasses.replace(record, decision=decision))
        return dataclasses.replace(step, effects=forged)

    outcome = replay(read_flight(rewrite(flight, tmp_path / "forged.log", forge)))
    assert not outcome.identical
    assert {one.place for one in outcome.differences} == {"effects.record.decision.source"}
    assert {(one.then, one.now) for one in outcome.differences} == {('"model"', '"safe"')}


def test_when_the_frame_was_on_the_wire_is_not_the_cores_to_decide(flight, tmp_path):
    def sent(step):
        if step.effects.record is None:
            return step
        record = dataclasses.replace(step.effects.record, on_wire_ns=step.now_ns + 5)
        return dataclasses.replace(step, effects=dataclasses.replace(step.effects, record=record))

    assert replay(read_flight(rewrite(flight, tmp_path / "sent.log", sent))).identical


def test_a_state_that_does_not_follow_from_the_one_before_is_told_once(flight, tmp_path):
    def meddle(step):
        if step.number != 65:
            return step
        return dataclasses.replace(step, before=dataclasses.replace(step.before, epoch=7))

    outcome = replay(read_flight(rewrite(flight, tmp_path / "meddled.log", meddle)))
    states = [one for one in outcome.differences if one.place.startswith("state")]
    assert next((one.number, one.place, one.then, one.now) for one in states) == (65, "state.epoch", "7", "1")


def test_nan_in_an_observation_is_no_difference(tmp_path):
    blind = script(tmp_path, more="[[event]]\nat_ms = 1200\nfields = { front_m = nan }\n")
    assert replay(read_flight(record(blind, tmp_path / "blind.log"))).identical


# Another configuration.


def test_the_same_configuration_agrees_with_itself(flight, tmp_path):
    opinion = second_opinion(read_flight(flight), other(tmp_path))
    assert opinion.divergences == []
    assert (opinion.agreed, opinion.moved) == (10, 0)


def test_a_longer_deadline_would_have_let_the_late_answers_be_the_models(flight, tmp_path):
    config = other(tmp_path, deadline_ms="280", clearance="0.9")
    opinion = second_opinion(read_flight(flight), config)
    assert opinion.divergences
    first = opinion.divergences[0]
    assert (first.then.decision.source, first.now.decision.source) == (Source.SAFE, Source.MODEL)
    assert Cause.MISS in first.then.decision.causes
    assert not first.unanswered
    assert opinion.agreed + len(opinion.divergences) == 9, "the log ends before the other would have decided the last"


def test_a_shorter_deadline_ends_by_its_own_timer_between_the_recorded_steps(tmp_path):
    flight = record(script(tmp_path), tmp_path / "flight.log")
    opinion = second_opinion(read_flight(flight), other(tmp_path, deadline_ms="100"))
    now = [one.now for one in opinion.divergences]
    assert {cause for record in now for cause in record.decision.causes} >= {Cause.PREDICTED_MISS}
    assert all(record.decision.source is Source.SAFE for record in now)


def test_an_observation_that_one_of_them_passes_over_is_decided_by_the_other_alone(flight, tmp_path):
    slower = other(tmp_path, period_ms="400", clearance="0.9")
    opinion = second_opinion(read_flight(flight), slower)
    assert [one for one in opinion.divergences if one.now is None]
    assert not any(one.unanswered for one in opinion.divergences)


def test_what_the_recording_was_not_asked_is_not_held_against_the_other(tmp_path):
    slow = script(
        tmp_path, robot=robot_toml(period_ms="400", clearance="0.9"), more="[world]\nobservation_period_ms = 200\n"
    )
    opinion = second_opinion(read_flight(record(slow, tmp_path / "slow.log")), other(tmp_path))
    alone = [one for one in opinion.divergences if one.then is None]
    assert alone
    assert any(one.unanswered for one in alone)


def test_another_robot_cannot_be_compared(flight, tmp_path):
    text = (
        robot_toml().replace('name = "linear"\nunit', 'name = "forward"\nunit').replace("linear = 2.0", "forward = 2.0")
    )
    (tmp_path / "other.toml").write_text(
        text.replace("axes = { linear", "axes = { forward").replace('axis = "linear"', 'axis = "forward"')
    )
    with pytest.raises(ConfigError, match="the recorded robot has linear, angular, gripper"):
        second_opinion(read_flight(flight), load_config(tmp_path / "other.toml"))


def test_a_second_opinion_may_begin_in_the_middle_of_a_cycle(tmp_path):
    """The answer to what was asked before the log begins is this one's too."""
    flight = record(script(tmp_path, duration_ms=4_000), tmp_path / "flight.log")
    inside = next(step for step in steps_of(read_flight(flight)) if step.before is not None and step.before.cycle)
    cut = rewrite(flight, tmp_path / "cut.log", lambda step: step if step.number >= inside.number else None)
    assert second_opinion(read_flight(cut), other(tmp_path)).divergences == []


def test_a_second_opinion_goes_on_behind_a_gap(flight, tmp_path):
    gap = rewrite(flight, tmp_path / "gap.log", lambda step: step if step.number != 10 else None)
    opinion = second_opinion(read_flight(gap), other(tmp_path))
    assert opinion.divergences == []
    assert opinion.tally.skipped == 64 - 10
    assert len(opinion.tally.flaws) == 1


# The command.


def run(*argv: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["replay", *map(str, argv)])
    return arguments.func(arguments)


def test_the_command_says_identical_and_leaves_with_0(flight, capsys):
    assert run(flight) == 0
    said = capsys.readouterr().out
    assert "10 decisions" in said
    assert "identical" in said


def test_the_command_shows_what_differs_and_leaves_with_1(flight, tmp_path, capsys):
    def forge(step):
        return (
            dataclasses.replace(step, effects=dataclasses.replace(step.effects, wake_ns=1))
            if step.number == 3
            else step
        )

    forged = rewrite(flight, tmp_path / "forged.log", forge)
    assert run(forged) == 1
    said = capsys.readouterr().out
    assert "effects.wake_ns" in said
    assert "not identical" in said
    assert run(forged, "--json") == 1
    summary = json.loads(capsys.readouterr().out)
    assert summary["identical"] is False
    assert [one["step"] for one in summary["differences"]] == [3]


def test_the_command_shows_where_another_configuration_would_have_decided_otherwise(flight, tmp_path, capsys):
    config = other(tmp_path, deadline_ms="280", clearance="0.9").file
    assert run(flight, "--config", config) == 1
    said = capsys.readouterr().out
    assert "safe: miss" in said
    assert "model" in said
    assert run(flight, "--config", config, "--json") == 1
    summary = json.loads(capsys.readouterr().out)
    assert summary["divergences"][0]["then"] == "safe: miss"
    assert run(flight, "--config", other(tmp_path).file) == 0
    assert "nothing otherwise" in capsys.readouterr().out


def test_the_command_tells_flaws_and_goes_on(flight, capsys):
    flight.write_bytes(flight.read_bytes()[:-5])
    assert run(flight) == 0
    assert "the last record was never finished" in capsys.readouterr().out


def test_a_log_without_a_step_is_an_error(flight):
    _, first_step, *_ = FrameReader().feed(flight.read_bytes())
    flight.write_bytes(flight.read_bytes()[: first_step.offset])
    with pytest.raises(FlightLogError, match="holds no step that can be replayed"):
        run(flight)


def test_a_rotated_log_is_one_flight_however_its_files_are_named(flight, tmp_path, capsys):
    header, *_ = read_flight(flight)
    steps = steps_of(read_flight(flight))
    blocks = [index for index, step in enumerate(steps) if step.before is not None]
    state = tmp_path / "state"
    state.mkdir()
    for name, part in (("flight.log.1", steps[: blocks[1]]), ("flight.log", steps[blocks[1] :])):
        writer = FlightWriter(state / name, header=header)
        for step in part:
            writer.append(encode_step(step), begins_block=step.before is not None)
        writer.close()
    for named in ([state], [state / "flight.log", state / "flight.log.1"]):
        assert run(*named, "--json") == 0
        summary = json.loads(capsys.readouterr().out)
        assert (summary["starts"], summary["steps"], summary["flaws"]) == (1, len(steps), [])
    assert run(state / "flight.log", flight, "--json") == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 2 * len(steps) - blocks[1], "another log is another flight"


def test_a_flaw_names_its_file(flight, tmp_path, capsys):
    short = record(script(tmp_path, duration_ms=500, robot=robot_toml(dwell_ms="500")), tmp_path / "short.log")
    short.write_bytes(short.read_bytes()[:-5])
    assert run(flight, short) == 0
    assert "short.log, at byte" in capsys.readouterr().out
