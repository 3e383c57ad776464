"""The shipped scenarios: each comes as it expects, replays identically, and never speeds up while it is to stop."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from flights import SCENARIOS, record

from edgeguard.recorder.log import read_flight
from edgeguard.recorder.replay import replay
from edgeguard.simulation.invariants import judge_invariants
from edgeguard.simulation.judgement import judge
from edgeguard.simulation.scenario import read_scenario
from edgeguard.simulation.simulation import simulate
from edgeguard.simulation.timeline import Timeline

FILES = sorted(file for file in SCENARIOS.glob("*.toml") if not file.stem.startswith("robot"))

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
def test_no_stop_speeds_the_robot_up_and_only_who_may_moves_it(file):
    """Measured at the wheels, whatever the guard believes."""
    judgements = judge_invariants(run_of(file), read_scenario(file).assembly.config.axes)
    assert [judgement.words for judgement in judgements if not judgement.met] == []
    assert len(judgements) >= 2


def test_together_they_show_most_of_the_causes():
    seen = {span.cause for file in FILES for span in run_of(file).causes}
    assert len(seen) >= 20, sorted(cause.value for cause in seen)
