"""The scripts of the bench: the overnight plan becomes commands that exist, and coverage goes on where it stopped."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from bench_robot import HASTY, FakeEye, fake_subject, write_config

from edgeguard.bench.calibration.coverage import TURN, Coverage
from edgeguard.bench.calibration.journal import Journal, Measured, Progressed
from edgeguard.bench.calibration.rig import Rig
from edgeguard.bench.calibration.sample import Look
from edgeguard.board import FixedKernel
from edgeguard.cli.commands import build_parser
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.config.toml import tomllib
from edgeguard.model.progress import Progress, silent

CLOCK = SystemClock()
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
    assert (arguments.quick, arguments.companion, arguments.age_ns) == (True, "ros2 launch all.py", 12 * NS_PER_MS)
    assert not arguments.resume
    out.parent.mkdir()
    out.with_name("robot.samples.gz").touch()
    assert build_parser().parse_args(overnight.command_of(run, folder=tmp_path)[1][3:]).resume


@pytest.mark.parametrize("run", [{}, {"config": "a"}, {"config": "a", "out": "b", "speed": 1}])
def test_a_plan_that_cannot_be_is_refused(run: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"a \[\[run\]\] has config and out"):
        overnight.command_of(run, folder=tmp_path)


def test_a_run_that_was_interrupted_is_gone_on_with(tmp_path: Path) -> None:
    config = write_config(tmp_path, period_ms=10, deadline_ms=10, behaviour={"passes": [2, 2], "base_ms": 1})
    subject, journal = fake_subject(), Journal.beside(tmp_path / "coverage.json")
    what = Measured(fingerprint=subject.identity(), kind="coverage", period_ns=config.timing.period_ns)
    journal.begin(what)

    class InterruptionError(Exception):
        pass

    def interrupt(phase: str, done: int, _total: int) -> None:
        if phase.startswith("calibration") and done == 2 * TURN - 30:
            raise InterruptionError

    def run(done: Progressed, progress: Progress) -> Coverage:
        rig = Rig(
            config=config, clock=CLOCK, effort=HASTY, subject=subject, kernel=FixedKernel(clock=CLOCK),
            eye=FakeEye(Look), running=None, progress=progress,
        )  # fmt: skip
        return coverage.course(rig, requests=2 * TURN, journal=journal, done=done)

    with pytest.raises(InterruptionError):
        run(Progressed(), interrupt)
    done = journal.resume(what)
    assert (done.priced is not None, len(done.blocks)) == (True, 17)
    found = run(done, silent)
    assert sum(cell.bound.n + cell.n for cell in found.cells) == 2 * TURN
    assert len(journal.resume(what).blocks) == found.blocks == 20
    assert {block.samples[0].worker for block in journal.resume(what).blocks} == {1, 2}
