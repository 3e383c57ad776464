"""The command line: one message and a documented exit code for every mistake, never a traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from argparse import ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest
from bench_robot import made_profile
from robot import CONFIG

from edgeguard import __version__
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.board import read_fingerprint
from edgeguard.budget import Schedule
from edgeguard.cli.commands import build_parser
from edgeguard.config import load_config
from edgeguard.engine.identity import configured_identity


def edgeguard(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A run of its own, as a user's."""
    argv = [sys.executable, "-m", "edgeguard", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=cwd)


def commands_of(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    return next((dict(action.choices) for action in parser._actions if isinstance(action, _SubParsersAction)), {})


def test_the_version_is_the_packages():
    assert edgeguard("--version").stdout == f"edgeguard {__version__}\n"


def test_help_teaches_where_to_begin():
    shown = edgeguard("--help").stdout
    for word in ("edgeguard demo", "edgeguard init", "edgeguard check", "edgeguard calibrate", "exit codes"):
        assert word in shown
    for name in commands_of(build_parser()):
        assert f"\n  {name} " in shown, name


def test_every_command_has_a_help_that_says_what_it_does():
    for name, parser in commands_of(build_parser()).items():
        assert len(parser.format_help()) > 200, name


def test_help_fits_a_terminal_of_eighty_columns_but_for_examples(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    pages = {"": (parser := build_parser()), **commands_of(parser)}
    for name, page in list(pages.items()):
        pages |= {f"{name} {own}": of for own, of in commands_of(page).items() if name}
    for name, page in pages.items():
        for line in page.format_help().splitlines():
            assert len(line) <= 80 or line.startswith("  "), (name, line)


def test_the_words_beside_an_example_are_broken_in_their_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = build_parser().format_help()
    assert (
        "  edgeguard init robot.toml        that robot's configuration, commented: make\n" + " " * 35 + "it yours"
        in page
    )
    below = commands_of(build_parser())["install"].format_help()
    assert (
        "  edgeguard install robot.toml                 what would be written, and what\n" + " " * 47 + "comes" in below
    )
    assert "  sudo /opt/edgeguard/bin/edgeguard install robot.toml --write\n" in below


@pytest.mark.parametrize(("columns", "lines"), [(42, 4), (90, 2)])
def test_a_long_message_is_broken_between_words_in_a_terminal_and_left_whole_in_a_pipe(columns, lines):
    text = "edgeguard: robot.toml: cannot be read (No such file or directory); name an existing TOML file"
    text += ", or let edgeguard init write one"
    assert edgeguard("check", "robto.toml").stderr == text.replace("robot", "robto") + "\n"
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        width = dict(os.environ, COLUMNS=str(columns))
        argv = [sys.executable, "-m", "edgeguard", "check", "robto.toml"]
        subprocess.run(argv, stderr=terminal, env=width, check=False)
    said = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert len(said) == lines
    assert " ".join(line.strip() for line in said) == text.replace("robot", "robto")
    assert max(map(len, said)) <= columns


def test_a_command_that_there_is_not_is_answered_with_where_they_are_listed():
    assert "there is no 'help': edgeguard --help lists" in " ".join(edgeguard("help").stderr.split())


def test_the_configuration_to_start_from_is_one_that_check_accepts(tmp_path):
    assert edgeguard("init", "robot.toml", cwd=tmp_path).returncode == 0
    checked = edgeguard("check", "robot.toml", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "nothing is wrong" in checked.stdout
    assert "link.port is empty" in checked.stdout
    again = edgeguard("init", "robot.toml", cwd=tmp_path)
    assert again.returncode == 2
    assert "exists and is left as it is" in again.stderr


@pytest.fixture
def config(tmp_path) -> Path:
    file = tmp_path / "robot.toml"
    file.write_text(CONFIG)
    return file


def test_check_prints_the_budget_that_adds_up(config):
    shown = json.loads(edgeguard("check", str(config), "--age-ms", "10", "--json").stdout)
    budget = shown["budget"]
    assert budget["age_ms"] == 10
    parts = budget["age_ms"] + budget["wire_ms"] + budget["reserve_ms"] + budget["available_ms"]
    assert parts == pytest.approx(budget["deadline_ms"], abs=0.01)
    assert shown["answer"] == {"go": 2}


def profile_beside(config: Path, *, thermal: str = "observed", **fingerprint: str) -> Path:
    profile = made_profile(
        thermal=thermal,
        fingerprint={**read_fingerprint(), "model": "fake", **fingerprint},
        schedule=Schedule(period_ns=load_config(config).timing.period_ns),
        margin=1.1,
    )
    file = config.with_name("robot.profile.json")
    write_profile(profile, file)
    return file


def test_check_says_what_every_thermal_level_leaves_and_warns_of_a_quick_profile(config):
    profile = profile_beside(config)
    done = edgeguard("check", str(config), "--profile", str(profile), "--age-ms", "0", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["budget"]["bound_ms"] == pytest.approx(16.5)
    assert shown["levels"]["nominal"]["bound_ms"] == pytest.approx(16.5)
    assert shown["levels"]["hot"] is None
    assert "a quick calibration, with a margin of x1.1" in done.stderr
    said = edgeguard("check", str(config), "--profile", str(profile), "--age-ms", "0").stdout
    assert "hot board: never measured" in said


def test_where_no_sensor_tells_the_temperature_check_says_the_bound_that_holds_at_any(config):
    profile = profile_beside(config, thermal="unobserved")
    arguments = ["check", str(config), "--profile", str(profile), "--age-ms", "0"]
    assert json.loads(edgeguard(*arguments, "--json").stdout)["levels"]["hot"]["bound_ms"] == pytest.approx(16.5)
    said = edgeguard(*arguments).stdout
    assert "at any temperature, as no sensor tells it: 16.5 ms" in " ".join(said.split())
    assert "never measured" not in said


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_profile_of_another_board_is_refused_with_the_difference(config, command):
    profile = profile_beside(config, **{"power mode": "15W"})
    place = [str(config)] if command == "check" else ["--config", str(config)]
    done = edgeguard(command, *place, "--profile", str(profile))
    assert done.returncode == 7
    now = read_fingerprint()["power mode"]
    assert f"power mode: 15W -> {now}" in done.stderr


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_profile_of_another_configuration_is_refused_with_the_difference(config, command):
    """Before any model is looked at; so a reload, which asks ``run --check``, changes nothing either."""
    cores = len(os.sched_getaffinity(0))
    profile = profile_beside(config, **configured_identity(load_config(config), threads=cores))
    place = [str(config)] if command == "check" else ["--check", "--port", "/dev/null", "--config", str(config)]
    asked = [command, *place, "--profile", str(profile)]
    assert "another configuration" not in edgeguard(*asked).stderr
    text = config.read_text()
    config.write_text(text.replace("{said} {front_m}", "{front_m} {said}") + "\n[model]\nthreads = 99\n")
    done = edgeguard(*asked)
    assert done.returncode == 7
    said = " ".join(done.stderr.split())
    assert f"threads: {cores} -> 99" in said
    assert re.search(r"measured with another configuration \(prompt: \w{16} -> \w{16}; ", said)
    if command == "run":
        assert edgeguard(*asked, "--worker", "mine {fd}").returncode == 0, "it answers for itself"


def test_run_refuses_a_port_without_a_name_whether_it_checks_or_starts(tmp_path):
    assert edgeguard("init", "robot.toml", cwd=tmp_path).returncode == 0
    profile = profile_beside(tmp_path / "robot.toml")
    for more in ((), ("--check",)):
        done = edgeguard("run", "--config", "robot.toml", "--profile", str(profile), *more, cwd=tmp_path)
        assert done.returncode == 2
        assert "robot.toml: link.port: missing; name the serial port" in done.stderr


MISTAKES = {
    "no such file": (["check", "nowhere.toml"], 2, "nowhere.toml: cannot be read"),
    "no such profile": (["check", "robot.toml", "--profile", "nowhere.json"], 7, "nowhere.json"),
    "a folder": (["check", "folder"], 2, "folder: cannot be read (Is a directory); name an existing TOML file"),
    "an empty file": (["calibrate", "empty"], 2, "empty: is empty; name an existing TOML file"),
    "no text": (["tune", "binary"], 2, "binary: line 1: is no text in UTF-8"),
    "no scenario": (["simulate", "empty"], 2, "empty: is empty; name a scenario's TOML file"),
    "a scenario of no robot": (["simulate", "alone.toml"], 2, "alone.toml: config: robbo.toml is not there"),
    "a folder without a log": (["log", "show", "folder"], 15, "folder: holds no flight.log"),
    "no log": (["replay", "binary"], 15, "binary: holds no header of a flight log"),
    "no log to follow": (["log", "tail", "binary", "--no-follow"], 15, "binary: holds no header of a flight log"),
    "a folder for a profile": (["report", "folder"], 7, "folder: cannot be read (Is a directory)"),
    "no guard": (["status", "--sockets", "folder"], 14, "no guard listens on folder/observe.sock"),
    "nowhere to write to": (["init", "no/robot.toml"], 2, "no/robot.toml: cannot be written (No such file or direct"),
    "nowhere to draw to": (["simulate", "robot.toml", "--plot", "no/a.png"], 2, "no/a.png: there is no folder no"),
    "no picture": (
        ["replay", "flight.log", "--plot", "a.doc"],
        2,
        "a.doc is no picture: name a file that ends in .png",
    ),
    "a folder for what is measured": (["calibrate", "robot.toml", "--out", "folder"], 2, "folder is a folder"),
    "a folder for the page": (["report", "p.json", "-o", "folder"], 2, "folder is a folder: name a file in it"),
    "nowhere to install": (["install", "--root", "empty", "--executable", "/bin/sh", "--write"], 1, "empty"),
    "no such model": (["model", "build", "smollm3"], 2, "smollm2-135m"),
    "no such folder": (["model", "inspect", "./nowhere"], 5, "nowhere"),
    "no age": (["check", "robot.toml", "--age-ms", "nan"], 2, "--age-ms: nan is not an age in milliseconds"),
    "an age of tomorrow": (["calibrate", "robot.toml", "--age-ms", "-1"], 2, "--age-ms: -1 is not an age"),
    "no time": (["log", "show", "flight.log", "--from", "inf"], 2, "--from: inf is not a time in seconds"),
    "no time either": (["replay", "flight.log", "--to", "1e300"], 2, "--to: 1e300 is not a time in seconds"),
    "no time to wait": (["status", "--wait-armed", "nan"], 2, "--wait-armed: nan is not a time in seconds"),
    "a slip in a command": (["calibrat", "robot.toml"], 2, "there is no 'calibrat': did you mean 'calibrate'?"),
    "no command": ([], 2, "edgeguard demo"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_message_and_its_exit_code(config, name):
    arguments, code, said = MISTAKES[name]
    (config.parent / "folder").mkdir()
    (config.parent / "empty").touch()
    (config.parent / "binary").write_bytes(bytes(range(255, 0, -1)))
    (config.parent / "alone.toml").write_text('config = "robbo.toml"\nduration_ms = 1000\n')
    done = edgeguard(*arguments, cwd=config.parent)
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_check_says_what_stops_the_robot_when_the_guard_is_dead(config):
    assert json.loads(edgeguard("check", str(config), "--json").stdout)["link"]["expiry"] == "per_frame"
    assert "the motor controller stops by itself" in " ".join(edgeguard("check", str(config)).stdout.split())


def test_check_says_everything_that_is_wrong_at_once(config):
    text = config.read_text()
    for old, new in (("tick_ms", "tik_ms"), ('"stop"] } }', '"halt"] } }'), ("{said} {front_m}", "{said} {fron_m}")):
        assert old in text
        text = text.replace(old, new)
    config.write_text(text)
    done = edgeguard("check", str(config))
    assert done.returncode == 2
    for said in ("timing.tik_ms: unknown key", "no number for 'halt'", "{fron_m}: no [[field]]"):
        assert said in done.stderr
    assert all(line.startswith("edgeguard: ") for line in done.stderr.splitlines())


def test_check_knows_which_providers_and_adapters_there_are(config):
    config.write_text(config.read_text() + '\n[model]\nprovider = "cuba"\nadapter = "nobody"\n')
    done = edgeguard("check", str(config))
    assert done.returncode == 2
    assert "robot.toml: model.provider: there is no execution provider 'cuba'; did you mean 'cuda'?" in done.stderr
    assert "robot.toml: model: no adapter 'nobody'; there are smollm2-135m-operator" in done.stderr


def test_check_knows_which_options_the_provider_and_the_runtime_have(config):
    options = 'provider = "openvino"\nprovider_options = { cache_dri = "x" }\nsession_options = { "no.key" = "1" }'
    config.write_text(f"{config.read_text()}\n[model]\n{options}\n")
    done = edgeguard("check", str(config))
    assert done.returncode == 2
    assert "robot.toml: model.provider_options: openvino has no option 'cache_dri'; did you mean" in done.stderr
    assert "robot.toml: model.session_options: unknown key 'no.key', which onnxruntime would" in done.stderr


TALKATIVE = {
    "JSON": ["check", "robot.toml", "--json"],
    "tables": ["check", "robot.toml"],
    "a help": ["--help"],
    "lines": ["doctor", "robot.toml", "--no-model", "--no-port"],
}


@pytest.mark.parametrize("name", TALKATIVE)
def test_a_reader_that_leaves_early_is_no_error(config, name):
    argv = [sys.executable, "-m", "edgeguard", *TALKATIVE[name]]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run(argv, stdout=gone, stderr=subprocess.PIPE, text=True, check=False, cwd=config.parent)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["JSON", "tables", "lines"])
def test_a_full_disk_is_one_message(config, name):
    argv = [sys.executable, "-m", "edgeguard", *TALKATIVE[name]]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=config.parent)
    assert done.returncode == 1
    assert done.stderr == "edgeguard: cannot be written any further (No space left on device); make room first\n"


@pytest.mark.parametrize("written", ["\ufeff{}", "{}"])
def test_a_file_as_other_systems_write_it_is_read(config, written):
    config.write_text(written.format(config.read_text()), newline="\r\n")
    done = edgeguard("check", str(config))
    assert done.returncode == 0, done.stderr
