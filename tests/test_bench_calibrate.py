"""Calibration from end to end, with a real process in the model's place whose latency is scripted."""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_robot import FAKE_WORKER, HASTY, FakeEye, fake_subject, write_config
from fake_worker import write_behaviour
from patience import wait_for

from edgeguard.bench.calibration.cached import load_or_calibrate
from edgeguard.bench.calibration.calibrate import calibrate
from edgeguard.bench.calibration.effort import Effort
from edgeguard.bench.calibration.journal import Journal
from edgeguard.bench.calibration.sample import Look
from edgeguard.bench.calibration.sweep import SIZES, sweep_depths, sweep_sizes
from edgeguard.bench.calibration.verdict import judge, overhead_of
from edgeguard.bench.subject import Subject
from edgeguard.bench.worker_client import Ready
from edgeguard.board import read_fingerprint
from edgeguard.budget import Profile, load_profile
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.config import Config, load_config
from edgeguard.errors import BoundError, ConfigError, ModelError, ProfileError
from edgeguard.types import ThermalLevel

BEHAVIOUR = {"passes": [10, 3, 3], "base_ms": 1, "token_ms": 0.2, "spread": 0.05, "overhead_ms": 0.5}
TYPICAL_MS = 3 * 1 + 16 * 0.2 + 0.5


def _calibrate(config: Config, *, effort: Effort = HASTY, **keys: Any) -> Profile:
    keys = {"out": config.file.with_name("profile.json"), "subject": fake_subject(), **keys}
    return calibrate(config, clock=SystemClock(), effort=effort, **keys)


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Profile, Path, list[tuple[str, int, int]]]:
    folder = tmp_path_factory.mktemp("calibrated")
    config, out, heard = write_config(folder, behaviour=BEHAVIOUR), folder / "profile.json", []
    profile = _calibrate(config, out=out, progress=lambda *step: heard.append(step))
    return config, profile, out, heard


def test_the_profile_is_written_as_it_was_returned(calibrated) -> None:
    _, profile, out, _ = calibrated
    assert load_profile(out) == profile
    assert profile.kind == "quick"


def test_the_profile_belongs_to_this_worker_on_this_board(calibrated) -> None:
    _, profile, _, _ = calibrated
    assert profile.differences({**read_fingerprint(), "model": "fake"}) == []


def test_the_cost_is_the_scripted_one(calibrated) -> None:
    _, profile, _, _ = calibrated
    for k in (3, 10):
        assert profile.cost.price_ns(k, 100) / NS_PER_MS == pytest.approx(1 + 0.2 * k, rel=0.25)
    assert profile.cost.constant_ns > 0.5 * NS_PER_MS


def test_enough_independent_requests_were_scored_for_the_percentile_that_is_named(calibrated) -> None:
    config, profile, _, _ = calibrated
    (bound,) = profile.bounds
    assert config.risk.confidence == 0.5
    assert bound.percentile == 0.95  # of max_miss_rate = 0.05
    assert bound.effective_n >= 14  # 0.95 ** 14 < 0.5
    assert len(profile.requests) == bound.n
    assert profile.schedule.period_ns == config.timing.period_ns


def test_every_rung_of_a_ladder_has_its_own_bound(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR)
    config.file.write_text(config.file.read_text() + '[[plan]]\nname = "full"\n[[plan]]\nname = "brief"\n')
    profile = _calibrate(load_config(config.file))
    assert [bound.rung for bound in profile.bounds] == ["full", "brief"], "in the order of the ladder"
    assert all(bound.effective_n >= 14 for bound in profile.bounds)
    assert profile.rungs == ("full", "brief")
    assert profile.bound_for(ThermalLevel.NOMINAL, rung="brief") is not None
    assert profile.bound_for(ThermalLevel.NOMINAL) is None


def test_the_passes_of_every_model_are_priced_and_its_rungs_bounded_by_them(tmp_path: Path) -> None:
    """The fake's second model takes half as long."""
    config = write_config(tmp_path, behaviour={**BEHAVIOUR, "spread": 0.0})
    rungs = '[[plan]]\nname = "large"\n[[plan]]\nname = "small"\nfolder = "./small"\n[[plan]]\nname = "again"\n'
    config.file.write_text(config.file.read_text() + rungs)
    profile = _calibrate(load_config(config.file))
    [small] = profile.others
    assert small.rungs == ("small",)
    assert len(small.sweep) == len(profile.sweep)
    assert profile.cost_of("large") is profile.cost_of("again") is profile.cost
    assert small.cost.price_ns(10, 100) < profile.cost.price_ns(10, 100)
    for name in profile.rungs:
        price_ns = profile.cost_of(name).passes_ns([(10, 100), (3, 110), (3, 113)])
        prices_ns = {one.price_ns for one in profile.requests if one.rung == name}
        assert prices_ns == {price_ns}, "each by its own model's prices"
    assert load_profile(config.file.with_name("profile.json")) == profile


def test_the_bound_is_the_dearest_price_times_the_score_and_lies_above_the_typical_request(calibrated) -> None:
    _, profile, _, _ = calibrated
    (bound,) = profile.bounds
    dearest_ns = max(one.dearest_ns for one in profile.requests)
    assert bound.bound_ns == pytest.approx(dearest_ns * bound.score, abs=1)
    assert bound.bound_ns > TYPICAL_MS * NS_PER_MS


def test_a_quick_profile_stretches_its_bounds_by_a_margin(calibrated) -> None:
    _, profile, _, _ = calibrated
    assert profile.margin == HASTY.margin > 1
    assert profile.bound.bound_ns == pytest.approx(profile.bounds[0].bound_ns * profile.margin, rel=1e-6)


def test_the_price_of_a_pass_is_measured_at_more_than_one_depth(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour={**BEHAVIOUR, "cached_ms": 0.02, "spread": 0.0})
    profile = _calibrate(config)
    assert {row.p for row in profile.sweep} == {50, 100, 502}
    assert profile.cost.per_cached_ns / NS_PER_MS == pytest.approx(0.02, rel=0.3)
    assert profile.cost.price_ns(10, 400) / NS_PER_MS == pytest.approx(1 + 0.2 * 10 + 0.02 * 400, rel=0.25)


def test_progress_tells_every_phase(calibrated) -> None:
    _, _, _, heard = calibrated
    assert list(dict.fromkeys(phase for phase, _, _ in heard)) == [
        "waiting for a quiet machine", "loading", "timing passes", "asking", "measuring",
    ]  # fmt: skip
    assert all(0 <= done <= total for _, done, total in heard)


def test_a_second_start_finds_the_profile_and_starts_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR, deadline_ms=2_000)
    known: dict[str, Any] = {
        "clock": SystemClock(), "cache_dir": tmp_path / "cache", "subject": fake_subject(), "effort": HASTY,
    }  # fmt: skip
    first = load_or_calibrate(config, **known)
    assert first.fresh
    write_behaviour(config.file, start="fail")  # a worker would not start any more
    again = load_or_calibrate(config, **known)
    assert not again.fresh
    assert (again.file, again.verdict.profile) == (first.file, first.verdict.profile)
    first.file.write_text("damaged")
    with pytest.raises(ModelError):  # measured again, for it cannot be used
        load_or_calibrate(config, **known)


def test_a_bound_that_does_not_fit_is_named_and_the_profile_is_kept(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour={**BEHAVIOUR, "base_ms": 6}, deadline_ms=10)
    with pytest.raises(BoundError, match="would fit"):
        load_or_calibrate(config, clock=SystemClock(), cache_dir=tmp_path, subject=fake_subject(), effort=HASTY)
    (kept,) = (tmp_path / "calibration").glob("*.json")
    verdict = judge(load_profile(kept), config=config, overhead=overhead_of(config))
    assert verdict.fitting_deadline_ms > 22


def test_what_keeps_the_worker_from_starting_is_passed_on(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour={"start": "fail"})
    with pytest.raises(ModelError, match="told to fail"):
        _calibrate(config)


CALIBRATE = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from bench_robot import HASTY, fake_subject
from edgeguard.bench.calibration.calibrate import calibrate
from edgeguard.clock import SystemClock
from edgeguard.config import load_config
calibrate(load_config({config!r}), clock=SystemClock(), out=Path({out!r}), subject=fake_subject(),
          effort=HASTY, progress=lambda *step: print(*step, flush=True))
"""


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_calibration_keeps_its_samples_and_goes_on_from_there(
    tmp_path: Path, kill: signal.Signals
) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR, max_miss_rate=0.02, confidence=0.7)
    out = tmp_path / "profile.json"
    out.write_text("the old one")
    script = CALIBRATE.format(tests=str(FAKE_WORKER.parent), config=str(config.file), out=str(out))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as bench:
        assert bench.stdout is not None
        assert any(line.startswith(b"measuring 30 ") for line in bench.stdout)
        bench.send_signal(kill)
        bench.communicate()
    assert out.read_text() == "the old one"
    assert not list(tmp_path.glob(".profile*"))
    wait_for(lambda: not _workers_of(config.file), "its worker ends with it")
    heard: list[tuple[str, int, int]] = []
    profile = _calibrate(config, resume=True, progress=lambda *step: heard.append(step))
    assert "timing passes" not in {phase for phase, _, _ in heard}
    assert next(done for phase, done, _ in heard if phase == "measuring") >= 30
    assert len(profile.requests) >= 60
    assert profile.schedule.workers > 1
    at_ns = [one.at_ns for one in profile.requests]
    assert at_ns == sorted(at_ns)  # the time of the run goes on where it was left
    assert load_profile(out) == profile


def test_a_calibration_goes_on_only_on_what_it_began_on(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR)
    out = tmp_path / "profile.json"
    with pytest.raises(ProfileError, match=r"profile\.samples\.gz: cannot be read .*begin without --resume"):
        _calibrate(config, out=out, resume=True)
    _calibrate(config, out=out)
    other = Subject(command=fake_subject().command, identity=lambda: {"model": "another"})
    with pytest.raises(ProfileError, match="model: fake -> another"):
        _calibrate(config, out=out, resume=True, subject=other)
    Journal.beside(out).file.write_bytes(b"nothing of ours")
    with pytest.raises(ProfileError, match="no samples of a calibration"):
        _calibrate(config, out=out, resume=True)


HEATED = replace(HASTY, kind="full", margin=1.0, workers=2, soak_ns=NS_PER_S, soak_window_ns=NS_PER_S // 8)


def test_a_board_without_sensors_is_heated_by_the_clock_and_its_worst_bound_always_holds(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR)
    profile = _calibrate(config, effort=HEATED, eye=FakeEye(Look))
    assert (profile.kind, profile.thermal, profile.margin) == ("full", "unobserved", 1.0)
    assert profile.soak is not None
    assert profile.soak.temperature_flat is None
    assert profile.soak.elapsed_ns >= 5 * HEATED.soak_window_ns
    assert {bound.level for bound in profile.bounds} == {ThermalLevel.NOMINAL, ThermalLevel.HOT}
    assert profile.schedule.workers == 4  # two at each level
    found = profile.bound_for(ThermalLevel.NOMINAL)
    assert found is not None
    assert found.score == max(bound.score for bound in profile.bounds)


def test_a_board_with_sensors_is_measured_cool_and_hot_and_each_level_has_its_bound(tmp_path: Path) -> None:
    """A board that goes from 40 to 70 degrees when it is heated, while its model becomes far slower."""
    config = write_config(tmp_path, behaviour=BEHAVIOUR)
    degrees = [40.0]

    def look() -> Look:
        return Look(temperature_c=degrees[0], clock_mhz=1_500.0)

    def progress(phase: str, *_: int) -> None:
        if phase == "heating":
            degrees[0] = 70.0
            write_behaviour(config.file, **BEHAVIOUR, slower=10)

    profile = _calibrate(config, effort=HEATED, eye=FakeEye(look), progress=progress)
    assert profile.thermal == "observed"
    assert profile.soak is not None
    assert (profile.soak.start_c, profile.soak.end_c) == (40.0, 70.0)
    nominal, hot, throttled = (profile.bound_for(level) for level in ThermalLevel)
    assert nominal is not None
    assert hot is not None
    assert throttled is None
    assert hot.score >= nominal.score
    cool, heated = (
        statistics.median(one.score for one in profile.requests if one.level is level)
        for level in (ThermalLevel.NOMINAL, ThermalLevel.HOT)
    )
    assert heated > 1.5 * cool
    assert {one.level for one in profile.requests if (one.temperature_c or 0) < 65} == {ThermalLevel.NOMINAL}
    rows = dict(judge(profile, config=config, overhead=overhead_of(config)).rows())
    assert "to 70 °C" in rows["thermal"]
    assert "reached hot, never throttled" in rows["thermal"]


def test_the_robots_own_software_runs_beside_and_its_end_is_an_error(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR)
    profile = _calibrate(config, companion="sleep 60")
    assert profile.schedule.beside == "sleep 60"
    assert "beside 'sleep 60'" in dict(judge(profile, config=config, overhead=overhead_of(config)).rows())["measured"]
    with pytest.raises(ConfigError, match=r"--with .*ended with status 3 while .*profile\.json\.beside\.log"):
        _calibrate(config, companion="sh -c 'sleep 1; exit 3'")
    with pytest.raises(ConfigError, match=r"--with '/nowhere/at/all': cannot be started"):
        _calibrate(config, companion="/nowhere/at/all")


def _workers_of(config: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:  # it has just ended
            continue
        if str(config).encode() in command and b"fake_worker.py" in command:
            found.append(int(process.name))
    return found


@pytest.mark.parametrize(
    ("sizes", "swept"),
    [
        (range(2, 65), [2, 3, 5, 9, 14, 24, 39, 64]),
        (range(3, 11), [3, 4, 5, 6, 7, 8, 10]),
        ([12], [12]),
        ([2, 16], [2, 3, 4, 5, 7, 9, 12, 16]),
    ],
)
def test_eight_sizes_are_swept_from_the_smallest_to_the_largest(sizes: list[int], swept: list[int]) -> None:
    ready = Ready(identity={}, prefix_tokens=1, capacity_tokens=512, bound_ns=None, pass_sizes=tuple(sizes))
    assert sweep_sizes(ready) == swept
    fixed = replace(ready, fixed_sizes=True, prefix_tokens=sizes[-1] + 1)
    assert sweep_sizes(fixed) == list(sizes), "there are no others"
    assert sweep_depths(fixed)[0] >= sizes[-1], "and a cache has at least as many tokens as one"
    assert len(swept) <= SIZES


@pytest.mark.parametrize(
    ("prefix", "capacity", "largest", "depths"),
    [(149, 256, 64, [74, 149, 192]), (149, 180, 64, [74, 149]), (1, 64, 8, [1, 56])],
)
def test_passes_are_timed_at_half_the_prefix_at_the_prefix_and_as_deep_as_they_fit(
    prefix: int, capacity: int, largest: int, depths: list[int]
) -> None:
    ready = Ready(identity={}, prefix_tokens=prefix, capacity_tokens=capacity, bound_ns=None, pass_sizes=(2, largest))
    assert sweep_depths(ready) == depths


def test_the_profile_is_json_that_anybody_reads(calibrated) -> None:
    _, _, out, _ = calibrated
    assert json.loads(out.read_text())["format"] == "edgeguard.calibration/1"
