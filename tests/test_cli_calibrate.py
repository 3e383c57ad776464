"""``edgeguard calibrate``: what it prints and which exit code says what."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from bench_robot import config, made_profile

from edgeguard.bench.calibration.effort import FULL, QUICK, Effort
from edgeguard.cli.calibrate import MINUTE_NS, add_parser, effort_of, kept_when_ended, report
from edgeguard.clock import NS_PER_MS
from edgeguard.errors import ConfigError


@pytest.mark.parametrize(("bound_ms", "exit_code"), [(15, 0), (27, 4)])
def test_the_verdict_is_a_table_for_people(capsys: pytest.CaptureFixture[str], bound_ms: float, exit_code: int) -> None:
    profile = made_profile(bound_ms=bound_ms)
    assert report(profile, file=Path("p.json"), config=config(), age_ns=0, as_json=False) == exit_code
    shown = capsys.readouterr().out
    for command in ("report p.json --config robot.toml -o p.html", "check robot.toml --profile p.json"):
        assert f"edgeguard {command}\n" in shown, "what comes next, to be copied"
    printed = " ".join(shown.split())  # it is wrapped to the terminal's width
    assert f"{bound_ms:.1f} ms for 99% of all requests" in printed
    assert ("would fit" in printed) is (exit_code == 4)
    assert "p.json" in printed


@pytest.mark.parametrize(("age_ms", "exit_code", "slack_ms"), [(0, 0, 13), (14, 4, -1)])
def test_the_verdict_is_one_object_for_programs(
    capsys: pytest.CaptureFixture[str], age_ms: int, exit_code: int, slack_ms: float
) -> None:
    settings = config(deadline_ms=30)  # with a reserve of 2 ms and some wire
    code = report(made_profile(), file=Path("p.json"), config=settings, age_ns=age_ms * NS_PER_MS, as_json=True)
    summary = json.loads(capsys.readouterr().out)
    assert code == exit_code
    assert summary["fits"] is (exit_code == 0)
    assert summary["profile"] == "p.json"
    assert summary["bound_ms"] == 15
    assert summary["slack_ms"] == pytest.approx(slack_ms, abs=3)
    assert summary["available_ms"] - summary["bound_ms"] == pytest.approx(summary["slack_ms"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser


def test_the_help_says_what_the_exit_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["calibrate", "--help"])
    shown = capsys.readouterr().out
    assert "4 the bound does not fit" in shown
    assert "--quick" in shown


def test_a_configuration_that_is_wrong_is_named_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "robot.toml"
    file.write_text("[timing]\nperiod = 200\n")
    arguments = _parser().parse_args(["calibrate", str(file), "--quick"])
    with pytest.raises(ConfigError, match=r"timing\.period: unknown key"):
        arguments.func(arguments)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], FULL),
        (["--quick"], QUICK),
        (["--soak", "0"], replace(FULL, soak_ns=0)),
        (["--soak", "0.5", "--limit", "120"], replace(FULL, soak_ns=MINUTE_NS // 2, limit_ns=120 * MINUTE_NS)),
        (["--quick", "--limit", "2"], replace(QUICK, limit_ns=2 * MINUTE_NS)),
    ],
)  # fmt: skip
def test_how_much_is_measured_is_what_was_asked_for(given: list[str], expected: Effort) -> None:
    assert effort_of(_parser().parse_args(["calibrate", "robot.toml", *given])) == expected


@pytest.mark.parametrize("minutes", ["-1", "1e9", "nan", "soon"])
def test_a_number_of_minutes_that_cannot_be_is_refused(minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _parser().parse_args(["calibrate", "robot.toml", "--soak", minutes])
    assert "--soak" in capsys.readouterr().err


def test_the_configuration_may_be_named_as_run_names_it_and_must_be_named() -> None:
    missing = Path("nowhere.toml")
    for given in (["nowhere.toml"], ["--config", "nowhere.toml"]):
        arguments = _parser().parse_args(["calibrate", *given])
        with pytest.raises(ConfigError, match=str(missing)):
            arguments.func(arguments)
    arguments = _parser().parse_args(["calibrate"])
    with pytest.raises(ConfigError, match="needs the configuration"):
        arguments.func(arguments)


def _end_ourselves(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)
    time.sleep(5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_it_is_told_where_its_samples_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    samples = tmp_path / "robot.samples.gz"
    samples.touch()
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), kept_when_ended(samples):
        _end_ourselves(number)
    assert f"{samples} has what was sampled; the same command with --resume goes on" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before
