"""The ladder of plans in the configuration: what a rung is, what it may ask and answer, and what is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench_robot import config_text, made_profile

from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.board import read_fingerprint
from edgeguard.budget import Bound, Schedule
from edgeguard.cli.main import main
from edgeguard.clock import NS_PER_MS
from edgeguard.config import load_config, parse_config
from edgeguard.errors import ConfigError
from edgeguard.runtime.assembly import assemble

LADDER = """
[[plan]]
name = "full"

[[plan]]
name = "brief"
system = ""
user = "{front_m}"
examples = 1

[[plan]]
name = "least"
examples = 0
schema = { type = "object", properties = { go = { const = "stop" } } }
"""


def test_without_plans_there_is_one_unnamed_rung() -> None:
    config = parse_config(config_text().encode(), file=Path("robot.toml"))
    assert config.plans == ()
    [rung] = config.rungs
    assert (rung.name, rung.prompt, rung.schema) == ("", config.prompt, config.schema)


def test_a_rung_is_what_it_says_and_else_what_the_other_sections_say() -> None:
    config = parse_config((config_text() + LADDER).encode(), file=Path("robot.toml"))
    full, brief, least = config.rungs
    assert (full.name, full.prompt, full.schema) == ("full", config.prompt, config.schema)
    assert (brief.prompt.system, brief.prompt.user, len(brief.prompt.examples)) == ("", "{front_m}", 1)
    assert brief.schema == config.schema
    assert (least.prompt.user, least.prompt.examples) == (config.prompt.user, ())
    assert least.schema["properties"] == {"go": {"const": "stop"}}


def test_a_recorded_configuration_needs_no_file_for_its_plans(tmp_path: Path) -> None:
    config = parse_config((config_text() + LADDER).encode(), file=tmp_path / "gone.toml", schema={"kept": 1})
    assert [rung.schema.get("kept") for rung in config.rungs] == [1, 1, None]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "brief"', 'name = "full"', "plan[1].name: 'full' must be a name of its own"),
        ('name = "brief"', 'name = ""', "plan[1].name: '' must be a name of its own"),
        ('name = "full"', 'name = "full"\nfolder = "other"', "plan[0].folder: a plan is another question to the model"),
        ("examples = 1", "examples = 3", "plan[1].examples: 3 is out of bounds: it must be between 0 and 2"),
        ("examples = 1", "example = 1", "plan[1].example: unknown key; did you mean 'examples'?"),
        ('user = "{front_m}"', 'user = "{front_n}"', "plan[1].user: {front_n}: no [[field]] of that name"),
        ('user = "{front_m}"', 'user = "{"', "plan[1].user: "),
        ("examples = 0", "examples = 1", "plan[2].example[0].answer: "),
        ('{ const = "stop" }', '{ const = "back" }', "plan[2].schema: 'go' may be \"back\", which answer.schema"),
        ('{ const = "stop" }', '{ type = "string" }', "plan[2].schema"),
        ("go = { const", "went = { const", "plan[2].schema: answer.schema has no field 'went'; it has: go"),
        ("go = { const", "went = { const", "plan[2].schema: axis 'linear' needs the field 'go'"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "robot.toml"
    file.write_text(config_text() + LADDER)
    assert assemble(file).config.plans
    assert LADDER.count(old) == 1
    file.write_text(config_text() + LADDER.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        assemble(file)
    assert any(said in problem for problem in caught.value.problems), caught.value.problems


def test_check_says_each_rungs_bound_and_what_it_leaves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, profile = tmp_path / "robot.toml", tmp_path / "profile.json"
    file.write_text(config_text(deadline_ms=60) + LADDER)

    def bound(rung: str, bound_ms: int) -> Bound:
        return Bound(
            bound_ns=bound_ms * NS_PER_MS, score=1.5, rank=1, percentile=0.99, confidence=0.95,
            n=300, effective_n=300, lag=1, rung=rung,
        )  # fmt: skip

    made = made_profile(
        kind="full",
        thermal="observed",
        fingerprint=read_fingerprint(),
        schedule=Schedule(period_ns=load_config(file).timing.period_ns),
        bounds=(bound("full", 90), bound("brief", 30)),
    )
    write_profile(made, profile)
    arguments = ["check", str(file), "--profile", str(profile), "--age-ms", "0"]
    assert main(arguments) == 0, "one of them fits"
    said = " ".join(capsys.readouterr().out.split())
    assert "plan 'full', nominal board: 90.0 ms for 99 % of all requests, at 95% confidence: " in said
    assert "plan 'brief', nominal board: 30.0 ms" in said
    assert "plan 'least', nominal board: never measured, so it does not run" in said
    assert main([*arguments, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown["plans"]) == ["full", "brief", "least"]
    assert shown["plans"]["full"]["nominal"]["slack_ms"] < 0 < shown["plans"]["brief"]["nominal"]["slack_ms"]
    assert shown["plans"]["full"]["hot"] is None
    assert shown["budget"]["bound_ms"] == 30
    assert "levels" not in shown
