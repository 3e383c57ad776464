"""The shipped scenarios: each comes as it expects, replays identically, and never speeds up while it is to stop."""

from __future__ import annotations

import functools
from itertools import pairwise
from pathlib import Path

import pytest
from flights import SCENARIOS, record

from edgeguard.clock import NS_PER_MS
from edgeguard.recorder.log import read_flight
from edgeguard.recorder.replay import replay
from edgeguard.simulation.judgement import judge
from edgeguard.simulation.scenario import read_scenario
from edgeguard.simulation.simulation import simulate
from edgeguard.simulation.timeline import Timeline
from edgeguard.types import Action, Mode

FILES = sorted(file for file in SCENARIOS.glob("*.toml") if not file.stem.startswith("robot"))

IN_FLIGHT_NS = 8 * NS_PER_MS
"""What the last command before a stop may still do: its time on the line and the motor controller's latency."""

each = pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])


@functools.cache
def run_of(file: Path) -> Timeline:
    return simulate(read_scenario(file))


def test_there_are_a_dozen_and_one():
    assert len(FILES) == 13


@each
def test_it_comes_as_expected(file):
    scenario = read_scenario(file)
    judgements = judge(scenario.expectation, run_of(file), scenario.assembly.config)
    assert [judgement.words for judgement in judgements if not judgement.met] == []
    assert len(judgements) >= 10


@each
def test_it_says_in_a_paragraph_what_it_shows(file):
    about = read_scenario(file).about
    assert 200 < len(about) < 500
    assert about.endswith(".")


@each
def test_it_replays_identically(file, tmp_path):
    outcome = replay(read_flight(record(read_scenario(file), tmp_path / "flight.log")))
    assert outcome.differences == []
    assert outcome.tally.skipped == 0
    assert outcome.tally.flaws == []


@each
def test_it_gives_the_same_run_twice(file):
    once, again = run_of(file), simulate(read_scenario(file))
    assert once.events == again.events
    assert once.sent == again.sent
    assert once.moments == again.moments


@each
def test_the_robot_moves_only_while_armed_or_on_a_rule(file):
    timeline = run_of(file)
    for at_ns, set_point in timeline.sent:
        if set_point.action is Action.MOVE:
            assert timeline.mode_at(at_ns) in (Mode.ARMED, Mode.INTERVENING)


@each
def test_no_stop_speeds_the_robot_up(file):
    """Measured at the wheels, whatever the guard believes."""
    timeline = run_of(file)
    stops = [
        (begin_ns + IN_FLIGHT_NS, end_ns)
        for (begin_ns, stop), (end_ns, _) in pairwise(timeline.sent)
        if stop.action is Action.STOP
    ]
    merged = []
    for begin_ns, end_ns in stops:
        if merged and begin_ns - IN_FLIGHT_NS == merged[-1][1]:
            merged[-1] = (merged[-1][0], end_ns)
        else:
            merged.append((begin_ns, end_ns))
    for before, after in pairwise(timeline.moments):
        if any(begin_ns <= before.at_ns and after.at_ns <= end_ns for begin_ns, end_ns in merged):
            assert abs(after.measured["linear"]) <= abs(before.measured["linear"]) + 1e-6, before.at_ns / NS_PER_MS


def test_together_they_show_most_of_the_causes():
    seen = {span.cause for file in FILES for span in run_of(file).causes}
    assert len(seen) >= 20, sorted(cause.value for cause in seen)
