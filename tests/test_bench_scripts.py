"""The scripts of the bench: the overnight plan becomes commands that exist, and coverage is judged as it is stated."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

from edgeguard.budget import RequestTimes
from edgeguard.cli.main import build_parser
from edgeguard.config.load import tomllib

FOLDER = Path(__file__).parents[1] / "calibration"


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


overnight, coverage = _script("overnight"), _script("coverage")


def test_the_plan_that_is_shipped_is_one_that_calibrate_understands() -> None:
    for run in tomllib.loads((FOLDER / "plan.toml").read_text())["run"]:
        out, argv = overnight.command_of(run, folder=FOLDER)
        assert argv[:3] == [sys.executable, "-m", "edgeguard"]
        arguments = build_parser().parse_args(argv[3:])
        assert arguments.config_place.resolve().is_file()
        assert arguments.out == out


def test_every_option_of_a_plan_is_one_of_calibrate_and_samples_are_gone_on_with(tmp_path: Path) -> None:
    run = {
        "config": "robot.toml", "out": "profiles/robot.json", "quick": True, "soak_minutes": 10, "limit_minutes": 2.5,
        "with": "ros2 launch all.py", "age_ms": 12,
    }  # fmt: skip
    out, argv = overnight.command_of(run, folder=tmp_path)
    arguments = build_parser().parse_args(argv[3:])
    assert (arguments.quick, arguments.companion, arguments.age_ms) == (True, "ros2 launch all.py", 12)
    assert not arguments.resume
    out.parent.mkdir()
    out.with_name("robot.samples.gz").touch()
    assert build_parser().parse_args(overnight.command_of(run, folder=tmp_path)[1][3:]).resume


@pytest.mark.parametrize("run", [{}, {"config": "a"}, {"config": "a", "out": "b", "speed": 1}])
def test_a_plan_that_cannot_be_is_refused(run: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"a \[\[run\]\] has config and out"):
        overnight.command_of(run, folder=tmp_path)


def _block(draw: random.Random, n: int, *, slower: float = 1.0) -> list[RequestTimes]:
    return [
        RequestTimes(latency_ns=round(1e8 * slower * draw.gauss(1, 0.05)), price_ns=10**8, dearest_ns=10**8)
        for _ in range(n)
    ]


@pytest.mark.parametrize(("slower", "covered"), [(1.0, True), (1.2, False)])
def test_coverage_says_whether_the_accepted_rate_lies_within_the_interval(slower: float, covered: bool) -> None:
    draw = random.Random(1)
    checks = [_block(draw, 100, slower=slower) for _ in range(20)]
    (row,) = coverage.judge(_block(draw, 2_000), checks, wanted=0.99, confidence=0.95)
    assert (row["checked"], row["accepted"]) == (2_000, pytest.approx(0.01))
    low, high = row["interval"]
    assert low <= row["rate"] <= high
    assert (low <= row["accepted"]) is covered
    assert row["bound_over_observed"] == pytest.approx(1 / slower, rel=0.05)


def test_the_interval_is_wider_where_violations_come_in_blocks() -> None:
    spread = [(1, 100)] * 20
    clustered = [(20, 100), *[(0, 100)] * 19]
    assert coverage.interval(spread) == (0.01, 0.01)
    low, high = coverage.interval(clustered)
    assert low == 0.0
    assert high >= 0.03
