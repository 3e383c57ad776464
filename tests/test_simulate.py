"""The simulated world and its script: what each part does, what is refused, and what is shown of a run."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from flights import SCENARIOS, robot_toml, script

from edgeguard.cli import simulate as command
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.errors import ConfigError, FlightLogError
from edgeguard.extras import install_command
from edgeguard.guard.interface import WorkerPhase
from edgeguard.recorder.log import read_flight
from edgeguard.recorder.replay import replay
from edgeguard.simulation.agenda import Agenda
from edgeguard.simulation.chart import FALLING, LABEL_WIDTH, MODE_CELLS, RISING, Chart
from edgeguard.simulation.happening import KINDS
from edgeguard.simulation.judgement import judge
from edgeguard.simulation.outcome import Outcome
from edgeguard.simulation.plans import Ladder
from edgeguard.simulation.scenario import read_scenario
from edgeguard.simulation.simulation import simulate
from edgeguard.simulation.story import tell
from edgeguard.simulation.worker import SimulatedWorker
from edgeguard.simulation.world import START_NS, World
from edgeguard.types import Action, Cause, Finish, Mode, Observation, Request, ThermalLevel

MS = NS_PER_MS

# The agenda.


def test_things_happen_in_the_order_of_their_times_and_then_of_their_entry():
    agenda, seen = Agenda(), []
    for name, at_ns in (("c", 3), ("a", 1), ("b1", 2), ("b2", 2)):
        agenda.at(at_ns, lambda name=name: seen.append((agenda.now_ns, name)))
    agenda.advance(2)
    assert seen == [(1, "a"), (2, "b1"), (2, "b2")]
    assert (agenda.now_ns, agenda.next_ns) == (2, 3)


def test_what_is_entered_for_the_past_happens_now():
    agenda, seen = Agenda(), []
    agenda.advance(5)
    agenda.at(1, lambda: seen.append(agenda.now_ns))
    agenda.advance(9)
    assert seen == [5]
    assert agenda.next_ns is None


# The worker.


class Bench:
    """A worker alone, with a finger on its agenda."""

    def __init__(self) -> None:
        self.agenda = Agenda()
        self.worker = SimulatedWorker(
            self.agenda,
            clock=lambda: self.agenda.now_ns,
            start_ns=100 * MS,
            failures_allowed=3,
            on_news=lambda: None,
        )
        self.agenda.advance(100 * MS)

    def pass_ms(self, ms: float) -> None:
        self.agenda.advance(self.agenda.now_ns + round(ms * MS))

    def ask(self, number: int) -> None:
        observation = Observation(fields={}, captured_ns=1)
        self.worker.ask(Request(request_id=number, epoch=1, observation=observation, answer_by_ns=1))

    def answered(self) -> list[int]:
        return [answer.request_id for answer in self.worker.take_answers()]

    @property
    def phase(self) -> WorkerPhase:
        return self.worker.status.phase


def test_a_worker_answers_after_its_latencies_in_turn():
    bench = Bench()
    bench.worker.ladder.scripts[""].latencies_ns = iter([50 * MS, 20 * MS])
    for number, latency in ((1, 50), (2, 20)):
        bench.ask(number)
        bench.pass_ms(latency - 1)
        assert bench.answered() == []
        bench.pass_ms(1)
        assert bench.answered() == [number]


def test_a_worker_finishes_what_it_does_and_then_takes_the_newest():
    bench = Bench()
    for number in (1, 2, 3):
        bench.ask(number)
    bench.pass_ms(250)
    assert bench.answered() == [1, 3]


def test_a_request_that_waits_can_be_called_off_and_one_under_way_cannot():
    bench = Bench()
    bench.ask(1)
    bench.ask(2)
    bench.worker.cancel(1)
    bench.worker.cancel(2)
    bench.pass_ms(250)
    assert bench.answered() == [1]


def test_a_dead_worker_is_started_again_after_a_growing_pause_until_nobody_tries_any_more():
    bench = Bench()
    bench.worker.broken = True
    bench.worker.die()
    assert bench.phase is WorkerPhase.GONE
    bench.pass_ms(200)
    assert bench.phase is WorkerPhase.WARMING
    bench.pass_ms(100)
    assert bench.phase is WorkerPhase.GONE
    bench.pass_ms(400 + 100)
    assert bench.phase is WorkerPhase.UNAVAILABLE
    bench.worker.broken = False
    bench.worker.retry()
    bench.pass_ms(100)
    assert bench.phase is WorkerPhase.READY
    assert bench.worker.starts == 4


def test_a_worker_that_hangs_answers_nothing_until_it_is_replaced():
    bench = Bench()
    bench.ask(1)
    bench.worker.hang()
    bench.ask(2)
    bench.pass_ms(300)
    assert bench.answered() == []
    bench.worker.restart("waited for in vain")
    assert bench.worker.status.detail == "waited for in vain", "the guard's words, as on the robot"
    bench.pass_ms(20 + 200 + 100)
    assert bench.phase is WorkerPhase.READY
    bench.ask(3)
    bench.pass_ms(100)
    assert bench.answered() == [3]


def test_a_worker_that_hangs_while_it_loads_is_replaced_when_its_time_is_up(tmp_path):
    robot = robot_toml().replace("[guard]\n", "[guard]\nstart_limit_ms = 800\n")
    more = '[[event]]\nat_ms = 0\nworker = "hangs"\n'
    timeline = simulate(script(tmp_path, more=more, robot=robot, duration_ms=3_000))
    assert [event.detail for _, event in timeline.events if event.name == "worker replaced"] == [
        "not ready within guard.start_limit_ms = 800; it was at: starting"
    ]
    assert timeline.worker_starts == 2
    assert timeline.mode_at(2_999 * MS) is Mode.ARMED


def test_a_complete_answer_makes_up_for_failures():
    bench = Bench()
    for _ in range(4):
        bench.worker.die()
        bench.pass_ms(300)
        bench.ask(1)
        bench.pass_ms(100)
    assert bench.phase is WorkerPhase.READY


# The world.


def test_a_suspended_computer_sees_no_time_pass_but_its_boottime_clock_does(tmp_path):
    world = World(script(tmp_path))
    world.agenda.advance(NS_PER_S)
    world.suspend(2 * NS_PER_S)
    before_ns = world.clock_ns()
    world.agenda.advance(3 * NS_PER_S)
    assert world.clock_ns() == before_ns == START_NS + NS_PER_S
    assert world.world_ns(before_ns) == 3 * NS_PER_S
    assert world.gather(lateness_ns=0).boottime_offset_ns == 2 * NS_PER_S


def test_messages_wait_for_a_starved_guard_and_the_newest_observation_wins(tmp_path):
    scenario = script(tmp_path)
    world = World(scenario)
    scenario.start.happen(world)
    world.agenda.advance(NS_PER_S)
    inputs = world.gather(lateness_ns=0)
    assert inputs.observation.captured_ns == START_NS + 800 * MS
    assert inputs.observation.fields["linear"] == 0.0, "what the axis measures"
    assert not world.news
    assert world.gather(lateness_ns=0).observation is None


def test_a_distance_shrinks_as_the_robot_drives(tmp_path):
    timeline = simulate(script(tmp_path, more='[world]\nshrinks = { front_m = "linear" }\n', duration_ms=4_000))
    seen = [record.observation.fields["front_m"] for _, record in timeline.decisions]
    assert seen[0] == 5.0
    assert seen == sorted(seen, reverse=True)
    assert 3.5 < seen[-1] < 4.2


def test_a_command_takes_its_time_on_the_line_and_the_echo_comes_back(tmp_path):
    timeline = simulate(script(tmp_path))
    up_ns = next(span.end_ns for span in timeline.causes if span.cause is Cause.LINK_LOST)
    rest_ns = next(span.end_ns for span in timeline.causes if span.cause is Cause.NO_ECHO)
    assert 5 * MS < up_ns < 10 * MS
    assert 7 * MS < rest_ns - up_ns < 13 * MS


# The script: every key, by one table.

EVENTS = {
    "fields": ("{ front_m = 0.2 }", "front_m = 0.2", {Cause.RULE}),
    "missing": ('["front_m"]', "no front_m", {Cause.MISSING_FIELD}),
    "observations": ('"off"', "observations off", {Cause.NO_OBSERVATION}),
    "age_ms": ("150", "observations 150 ms old", {Cause.STALE_OBSERVATION}),
    "stamp": ('"zero"', "stamp zero", {Cause.BAD_STAMP}),
    "answer": ("{ speed = 0.55 }", "answer speed = 0.55", {Cause.INCOMPLETE_ANSWER}),
    "latency_ms": ("[150, 300]", "answers in 150, 300 ms", {Cause.MISS}),
    "finish": ('"infeasible"', "answers: infeasible", {Cause.INFEASIBLE}),
    "confidence": ("0.4", "answers 40% sure", {Cause.LOW_CONFIDENCE}),
    "bound_ms": ("[190, 195]", "bound 190, 195 ms", {Cause.PREDICTED_MISS}),
    "plans": (
        "{ full = { bound_ms = 195 }, brief = { latency_ms = [80, 90] } }",
        "full: bound 195 ms; brief: answers in 80, 90 ms",
        set(),
    ),
    "board": ('"hot"', "board hot", {Cause.LEVEL_UNCALIBRATED}),
    "worker": ('"dies"', "worker dies", {Cause.WORKER_DEAD, Cause.WORKER_WARMING}),
    "link": ('"is cut"', "link is cut", {Cause.LINK_LOST}),
    "controller": ('"fails"', "motor controller fails", {Cause.CONTROLLER_FAULT}),
    "operator": ('"stop"', "operator: stop", {Cause.OPERATOR_STOP}),
    "holds": ('{ "drift alarm" = "too slow" }', "drift alarm", {Cause.DRIFT_ALARM}),
    "ends": ('["drift alarm"]', "no more drift alarm", set()),
    "starve_ms": ("70", "guard starved for 70 ms", {Cause.GUARD_OVERRUN}),
    "suspend_ms": ("300", "suspended for 300 ms", {Cause.CLOCK_JUMP}),
    "clock_back_ms": ("50", "clock set back by 50 ms", {Cause.CLOCK_JUMP}),
}


PLANS = '\n[[plan]]\nname = "full"\n[[plan]]\nname = "brief"\n'


def test_every_key_is_in_the_table():
    assert EVENTS.keys() == KINDS.keys()


@pytest.mark.parametrize("key", KINDS)
def test_an_event_does_what_it_says(tmp_path, key):
    value, label, causes = EVENTS[key]
    robot = robot_toml() + PLANS if key == "plans" else None
    event = f"[[event]]\nat_ms = 2000\n{key} = {value}\n"
    timeline = simulate(script(tmp_path, more=event, duration_ms=2_700, robot=robot))
    assert timeline.script == [(2_000 * MS, label)]
    assert causes <= timeline.causes_once_armed
    assert bool(causes) is bool(timeline.causes_once_armed)


def test_the_first_plan_whose_bound_fits_answers_and_the_run_says_which(tmp_path):
    more = "[[event]]\nat_ms = 2000\nplans = { full = { bound_ms = 195 } }\n"
    scenario = script(tmp_path, more=more, duration_ms=3_000, robot=robot_toml() + PLANS)
    timeline = simulate(scenario)
    assert [span.plan for span in timeline.plans] == ["full", "brief"]
    assert timeline.plan_at(1_900 * MS) == "full"
    assert timeline.plan_at(0) is None
    assert [line.words for line in tell(timeline) if line.words.startswith("plan")] == [
        "plan 'full' answers", "plan 'brief' answers",
    ]  # fmt: skip
    lines = ["".join(text for text, _ in line) for line in Chart(timeline=timeline, axes=[], width=40).lines()]
    (plan,) = (line for line in lines if line.startswith("plan"))
    assert plan.rstrip().endswith("█" + 12 * "▄")
    assert "█ full   ▄ brief" in lines[-1]


def test_no_plan_fits_and_a_level_that_was_never_measured_has_the_factor_on_its_bounds():
    def request(level: ThermalLevel, margin: float = 1.0) -> Request:
        about = {"request_id": 1, "epoch": 1, "observation": Observation(fields={}, captured_ns=1), "answer_by_ns": 1}
        return Request(level=level, margin=margin, **about)

    ladder = Ladder(("full", "brief"), uncalibrated_factor=2.0)
    assert ladder.promise is None
    assert ladder.choose(request(ThermalLevel.NOMINAL), left_ns=0) == ("full", None)
    ladder.scripts["full"].bounds_ns = (100,)
    assert ladder.choose(request(ThermalLevel.NOMINAL), left_ns=99) is None, "the other was never measured"
    ladder.scripts["brief"].bounds_ns = (40, 50)
    assert ladder.promise.bounds_ns == (40, 50)
    assert ladder.choose(request(ThermalLevel.HOT), left_ns=200) == ("full", 200)
    assert ladder.choose(request(ThermalLevel.THROTTLED), left_ns=199) == ("brief", 100)
    assert ladder.choose(request(ThermalLevel.NOMINAL, 1.5), left_ns=149) == ("brief", 40)
    assert ladder.choose(request(ThermalLevel.NOMINAL, 1.5), left_ns=40) == ("brief", 40), "to prove itself"
    assert Ladder(("a", "b")).choose(request(ThermalLevel.HOT), left_ns=9) == ("a", None)


def test_a_note_takes_the_place_of_the_label_and_events_may_do_several_things(tmp_path):
    more = (
        '[[event]]\nat_ms = 900\nlink = "is cut"\noperator = "stop"\n[[event]]\nat_ms = 500\nage_ms = 5\nnote = "x"\n'
    )
    timeline = simulate(script(tmp_path, more=more))
    assert timeline.script == [(500 * MS, "x"), (900 * MS, "link is cut, operator: stop")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[[event]]\nat_ms = 1\nlatency = 5\n", r"event\[0\]\.latency: unknown key; did you mean 'latency_ms'\?"),
        ("[[event]]\nat_ms = 1\n", r"event\[0\]\.at_ms: nothing happens; an event has one or more of: fields, "),
        (
            "[[event]]\nat_ms = 1\nplans = { full = { latency_ms = 1 } }\n",
            r"event\[0\]\.plans: no \[\[plan\]\] is named 'full'; known: ",
        ),
        ("[[event]]\nage_ms = 1\n", r"event\[0\]\.at_ms: missing"),
        ('[[event]]\nat_ms = 1\nworker = "dyes"\n', r"'dyes' is not one of dies, hangs, .*did you mean 'dies'\?"),
        ("[[event]]\nat_ms = 1\nfields = { fornt_m = 1 }\n", r"no \[\[field\]\] is named 'fornt_m'; known: said,"),
        ('[[event]]\nat_ms = 1\nholds = { "drift" = "x" }\n', "no cause is named 'drift'"),
        ("[[event]]\nat_ms = 1\nlatency_ms = []\n", r"\[\] is neither milliseconds nor a list of them"),
        ('[[event]]\nat_ms = 1\nlatency_ms = "fast"\n', "fast is neither milliseconds nor a list of them"),
        ('[expect]\ncauses = ["mist"]\n', "'mist' is no cause; known: predicted miss, miss, "),
        ("[expect]\ncounters = { tripps = 1 }\n", "nothing is counted under this name; known: cycles, "),
        ("[expect]\ndecel = { sideways = 1 }\n", r"no \[\[axis\]\] has this name; known: linear, "),
        ("[world]\nshrinks = { up_m = 'linear' }\n", r"world\.shrinks\.up_m: no \[\[field\]\] has this name"),
        ("surprise = 1\n", "unknown key"),
        ("[", "not valid TOML"),
    ],
)
def test_what_is_wrong_with_a_script_is_named(tmp_path, more, said):
    with pytest.raises(ConfigError, match=said):
        script(tmp_path, more=more)


def test_a_robots_configuration_is_told_from_a_scenario():
    with pytest.raises(ConfigError) as refused:
        read_scenario(SCENARIOS / "robot.toml")
    (problem,) = refused.value.problems
    assert "is a robot's configuration, not a scenario; name a scenario, and with --config" in problem


def test_a_scenario_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read"):
        read_scenario(tmp_path / "gone.toml")


def test_what_was_not_met_is_told_with_what_came(tmp_path):
    more = """
[expect]
causes = ["miss"]
counters = { misses = 2 }
decel = { linear = 0.1 }
worker_starts = 7
[[expect.at]]
at_ms = 1900
mode = "armed"
causes = ["drift alarm"]
measured = { linear = 0.1 }
[[expect.stop]]
axis = "linear"
after_ms = 1500
within_ms = 100
travel = 0.001
[[event]]
at_ms = 1600
operator = "stop"
"""
    scenario = script(tmp_path, more=more)
    judgements = judge(scenario.expectation, simulate(scenario), scenario.assembly.config)
    assert not any(judgement.met for judgement in judgements)
    assert [judgement.words for judgement in judgements] == [
        "once it was armed, these causes arose: miss; but: operator stop",
        "misses: 2; but: 0",
        "starts of the worker: 7; but: 1",
        "no stop slows linear down faster than 0.1 /s; but: 2",
        "at 1900 ms it is armed; but: latched",
        "at 1900 ms these causes hold: drift alarm; but: operator stop",
        "at 1900 ms linear is at 0.1; but: 0",
        "from 1500 ms on linear comes to rest within 100 ms; but: 350 ms",
        "until then it goes no farther than 0.001; but: 0.0831",
    ]


# What is shown.


def text_of(line) -> str:
    return "".join(text for text, _ in line)


def test_a_chart_has_a_column_for_every_stretch_of_time():
    scenario = read_scenario(SCENARIOS / "talked_into_it.toml")
    timeline = simulate(scenario)
    lines = [text_of(line) for line in Chart(timeline=timeline, axes=scenario.assembly.config.axes, width=60).lines()]
    by_name = {line[:LABEL_WIDTH].strip(): line[LABEL_WIDTH:] for line in lines}
    assert len(by_name["mode"]) == 60
    assert set(by_name["mode"]) == {MODE_CELLS[mode] for mode in (Mode.INHIBITED, Mode.ARMED, Mode.INTERVENING)}
    assert by_name["linear m/s"].endswith(" 0.5")
    assert set(by_name["linear m/s"][:60]) <= set(RISING)
    backwards = next(line[LABEL_WIDTH:] for line in lines if line.endswith(" -0.1"))
    assert set(backwards[:60]) <= set(FALLING)
    assert backwards[:60].strip(" ")
    assert "angular rad/s" not in by_name, "it does not turn"
    assert "━" in by_name["out of envelope"]
    assert by_name["events"].count("▲") == 8


def test_a_ruler_is_never_too_dense():
    scenario = read_scenario(SCENARIOS / "talked_into_it.toml")
    timeline = simulate(scenario)
    for width in (20, 33, 60, 120):
        ruler = text_of(next(iter(Chart(timeline=timeline, axes=(), width=width).lines())))
        assert re.fullmatch(r" +0 s( +[\d.]+)+", ruler)


def test_a_story_tells_what_was_done_and_what_came_of_it():
    lines = tell(simulate(read_scenario(SCENARIOS / "operator_stop.toml")))
    assert [line.at_ns for line in lines] == sorted(line.at_ns for line in lines)
    words = [line.words for line in lines]
    assert words[words.index("said = Stop!") + 1] == "latched: operator stop: said says 'Stop!'"
    assert words[words.index("re-arm, too early") + 1] == "re-arm refused: still holds: operator stop"


def run(*argv: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["simulate", *map(str, argv)])
    return arguments.func(arguments)


def test_the_command_shows_the_run_and_leaves_with_0(capsys):
    assert run(SCENARIOS / "one_late_answer.toml") == 0
    said = capsys.readouterr().out
    assert "One answer comes late." in said
    assert "linear m/s" in said
    assert "3.192 s ▒ intervening: miss: no answer" in said
    assert "as expected  all 11 expectations are met" in said
    assert max(map(len, said.splitlines())) <= 80


def test_the_command_leaves_with_1_when_it_came_otherwise(tmp_path, capsys):
    eager = tmp_path / "eager.toml"
    eager.write_text(robot_toml(on_time_to_arm="20"))
    assert run(SCENARIOS / "one_late_answer.toml", "--config", eager) == 1
    assert "not as expected  at 3190 ms it is armed; but: inhibited" in capsys.readouterr().out


def test_the_command_prints_one_json_object(capsys):
    assert run(SCENARIOS / "link_cut.toml", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["as_expected"] is True
    assert [span["mode"] for span in summary["modes"]][:3] == ["inhibited", "armed", "intervening"]
    assert {span["cause"] for span in summary["causes"]} >= {"link lost", "no echo"}


def test_a_folder_is_a_table_with_a_line_for_each_of_its_scenarios(capsys):
    assert run(SCENARIOS) == 0
    header, *rows, _, verdict = capsys.readouterr().out.splitlines()
    assert header.split() == ["scenario", "s", "decisions", "model", "misses", "trips", "expectations"]
    assert [row.split()[0] for row in rows] == sorted(
        file.stem for file in SCENARIOS.glob("*.toml") if not file.stem.startswith("robot")
    )
    assert all(re.search(r"  all \d+ met$", row) for row in rows)
    assert verdict == f"as expected  all {len(rows)} scenarios"
    assert max(map(len, [header, *rows])) <= 80


def test_one_of_several_that_comes_otherwise_is_told_and_the_exit_code_is_1(tmp_path, capsys):
    eager = tmp_path / "eager.toml"
    eager.write_text(robot_toml(on_time_to_arm="20"))
    assert run(SCENARIOS / "one_late_answer.toml", SCENARIOS / "operator_stop.toml", "--config", eager) == 1
    said = capsys.readouterr().out
    assert re.search(r"\none_late_answer .*  \d+ of 11 not met\n  not as expected  ", said)
    assert said.endswith("\nnot as expected  2 of 2 scenarios\n")


def test_several_are_a_list_of_the_objects_that_each_alone_is(capsys):
    files = [SCENARIOS / "one_late_answer.toml", SCENARIOS / "suspended.toml"]
    assert run(*files, "--json") == 0
    several = json.loads(capsys.readouterr().out)
    for file, summary in zip(files, several, strict=True):
        run(file, "--json")
        assert json.loads(capsys.readouterr().out) == summary


def test_what_is_wrong_with_any_of_several_is_named_at_once(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text("[")
    with pytest.raises(ConfigError) as refused:
        run(tmp_path)
    assert [problem.split(": ")[0] for problem in refused.value.problems] == [
        str(tmp_path / "a.toml"),
        str(tmp_path / "b.toml"),
    ]


@pytest.mark.parametrize("option", ["--plot", "--log"])
def test_what_is_of_one_run_is_not_made_of_several(tmp_path, option):
    with pytest.raises(ConfigError, match="are of one run: name one scenario"):
        run(SCENARIOS, option, tmp_path / "file.png")


def test_a_folder_without_a_scenario_is_named(tmp_path):
    (tmp_path / "robot.toml").write_text(robot_toml())
    with pytest.raises(ConfigError, match="there is no scenario in it"):
        run(tmp_path)


def test_a_run_that_breaks_what_always_holds_is_bad_whatever_was_expected(tmp_path):
    """No core does that: two lies about the same run."""
    scenario = script(tmp_path, more='[[event]]\nat_ms = 1500\noperator = "stop"\n', duration_ms=2_000)
    timeline = simulate(scenario)
    assert Outcome.of(scenario, timeline).good
    last = timeline.moments[-1]
    timeline.moments[-1] = replace(last, measured={**last.measured, "linear": 0.3})
    timeline.modes[-1].mode = Mode.ARMED
    moved_ns = next(at_ns for at_ns, set_point in timeline.sent if set_point.action is Action.MOVE)
    next(span for span in timeline.modes if span.covers(moved_ns)).mode = Mode.LATCHED
    outcome = Outcome.of(scenario, timeline)
    assert not outcome.good
    may, stops = outcome.complaints
    moves = "never to happen  the robot moves only while armed, or by a rule while intervening"
    assert may == f"{moves}; but: at {moved_ns / MS:g} ms"
    assert stops == f"never to happen  no stop moves linear away from its safe value; but: at {last.at_ns / MS:g} ms"


def test_colours_are_left_out_when_nobody_wants_them(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    run(SCENARIOS / "one_late_answer.toml")
    coloured = capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    run(SCENARIOS / "one_late_answer.toml")
    plain = capsys.readouterr().out
    assert re.search(r"\x1b\[3\dm", coloured)
    assert not re.search(r"\x1b\[[\d;]*3\dm", plain)


def test_a_run_can_be_recorded_and_replayed(tmp_path, capsys):
    log = tmp_path / "flight.log"
    assert run(SCENARIOS / "one_late_answer.toml", "--log", log) == 0
    assert replay(read_flight(log)).identical
    with pytest.raises(ConfigError, match="exists and is left as it is"):
        run(SCENARIOS / "one_late_answer.toml", "--log", log)
    with pytest.raises(FlightLogError, match="No such file or directory; 633 of 633 steps are not in it"):
        run(SCENARIOS / "one_late_answer.toml", "--log", tmp_path / "nowhere" / "flight.log")


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_run_can_be_drawn(tmp_path, capsys, ending, begins):
    file = tmp_path / f"run.{ending}"
    assert run(SCENARIOS / "suspended.toml", "--plot", file) == 0
    content = file.read_bytes()
    assert content.startswith(begins)
    assert len(content) > 10_000


def test_a_robot_that_never_moves_can_be_drawn_too(tmp_path, capsys):
    script(tmp_path, duration_ms=300)
    assert run(tmp_path / "script.toml", "--plot", tmp_path / "run.png") == 0


@pytest.mark.parametrize("name", ["nowhere/run.png", "run.xyz"])
def test_a_picture_that_cannot_be_written_is_an_error(tmp_path, capsys, name):
    with pytest.raises(SystemExit, match="2"):
        run(SCENARIOS / "one_late_answer.toml", "--plot", tmp_path / name)
    assert name.split("/")[0] in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named(tmp_path):
    code = f"""
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.figure"] = None
from pathlib import Path
from edgeguard.errors import MissingExtraError
from edgeguard.simulation.plot import draw
from edgeguard.simulation.scenario import read_scenario
from edgeguard.simulation.simulation import simulate
scenario = read_scenario(Path({str(SCENARIOS / "one_late_answer.toml")!r}))
try:
    draw(simulate(scenario), title="a run", about="", axes=scenario.assembly.config.axes, file=Path("run.png"))
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == f"drawing a timeline needs the package 'matplotlib': {install_command('plots')}"


def test_answers_may_end_in_every_way(tmp_path):
    for finish in Finish:
        more = f'[[event]]\nat_ms = 1500\nfinish = "{finish.value}"\n'
        timeline = simulate(script(tmp_path, more=more))
        assert (timeline.mode_at(1_999 * MS) is Mode.ARMED) is (finish is Finish.COMPLETE)
