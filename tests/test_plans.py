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
from edgeguard.recorder.record import FlightHeader, decode_header, encode_header
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
    assert (rung.name, rung.model, rung.prompt, rung.schema) == ("", config.model, config.prompt, config.schema)
    assert config.by_model == (config,)


def test_a_rung_is_what_it_says_and_else_what_the_other_sections_say() -> None:
    config = parse_config((config_text() + LADDER).encode(), file=Path("robot.toml"))
    full, brief, least = config.rungs
    assert (full.name, full.prompt, full.schema) == ("full", config.prompt, config.schema)
    assert (brief.prompt.system, brief.prompt.user, len(brief.prompt.examples)) == ("", "{front_m}", 1)
    assert brief.schema == config.schema
    assert (least.prompt.user, least.prompt.examples) == (config.prompt.user, ())
    assert least.schema["properties"] == {"go": {"const": "stop"}}


def test_a_recorded_configuration_needs_no_file_for_its_plans(tmp_path: Path) -> None:
    text = (config_text() + LADDER.replace("schema = {", 'schema_file = "gone.json" #')).encode()
    config = parse_config(text, file=tmp_path / "gone.toml", schemas={"": {"kept": 1}, "least": {"kept": 2}})
    assert [rung.schema.get("kept") for rung in config.rungs] == [1, 1, 2]
    with pytest.raises(ConfigError, match=r"plan\[2\].schema_file: .*gone.json cannot be read"):
        parse_config(text, file=tmp_path / "gone.toml")


def test_a_smaller_schema_may_be_a_file_and_is_in_the_flight_log(tmp_path: Path) -> None:
    file, schema = tmp_path / "robot.toml", tmp_path / "least.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"go": {"const": "stop"}}}))
    file.write_text(config_text() + LADDER.replace("schema = {", 'schema_file = "least.json" #'))
    config = load_config(file)
    assert config.rungs[2].schema["properties"] == {"go": {"const": "stop"}}
    header = FlightHeader.from_config(config, reserve_ns=1, wire_ns=1, created="")
    schema.unlink()
    recorded = decode_header(encode_header(header)).config()
    assert recorded == config
    assert list(header.settings().rung_fields) == ["full", "brief", "least"]


SMALL = """
[[plan]]
name = "small"
folder = "./small"
"""


def test_a_plan_may_ask_another_model_which_runs_as_the_first_does(tmp_path: Path) -> None:
    model = "[model]\nfolder = 'smollm2-135m'\nadapter = 'drive'\nthreads = 3\n"
    again = "\n[[plan]]\nname = 'again'\nadapter = './other'\n"
    config = parse_config((model + config_text() + LADDER + SMALL + again).encode(), file=tmp_path / "robot.toml")
    full, brief, least, small, other = config.rungs
    assert full.model == brief.model == least.model == config.model
    assert (small.model.folder, small.model.adapter) == (str(tmp_path / "small"), None)
    assert (other.model.folder, other.model.adapter) == ("smollm2-135m", str(tmp_path / "other"))
    assert small.model.threads == other.model.threads == 3
    assert [(one.model, len(one.plans)) for one in config.by_model] == [
        (config.model, 3), (small.model, 1), (other.model, 1),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"plan\[0\].adapter: 'drive' is built into a recipe's model"):
        parse_config((config_text() + SMALL + "adapter = 'drive'").encode(), file=tmp_path / "robot.toml")
    folder = model.replace("smollm2-135m'\nadapter = 'drive", "./finished")
    with pytest.raises(ConfigError, match=r"plan\[0\].adapter: './other' is built into a recipe's model"):
        parse_config((folder + config_text() + again).encode(), file=tmp_path / "robot.toml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "brief"', 'name = "full"', "plan[1].name: 'full' must be a name of its own"),
        ('name = "brief"', 'name = ""', "plan[1].name: '' must be a name of its own"),
        ('name = "full"', 'name = "full"\nfolders = "other"', "plan[0].folders: unknown key; did you mean 'folder'?"),
        ("schema = {", 'schema_file = "one.json"\nschema = {', "plan[2].schema: give schema or schema_file, not both"),
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
    assert "plan 'full', nominal board: 90.0 ms for 99% of all requests, at 95% confidence: " in said
    assert "plan 'brief', nominal board: 30.0 ms" in said
    assert "plan 'least', nominal board: never measured, so it does not run" in said
    assert main([*arguments, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert list(shown["plans"]) == ["full", "brief", "least"]
    assert shown["plans"]["full"]["nominal"]["slack_ms"] < 0 < shown["plans"]["brief"]["nominal"]["slack_ms"]
    assert shown["plans"]["full"]["hot"] is None
    assert shown["budget"]["bound_ms"] == 30
    assert "levels" not in shown
