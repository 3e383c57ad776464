"""Calibration from end to end, with a real process in the model's place whose latency is scripted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from bench_robot import FAKE_WORKER, NEVER_BUSY, fake_subject, write_config
from fake_worker import write_behaviour

from edgeguard.bench.cached import load_or_calibrate
from edgeguard.bench.calibrate import SWEEP_SIZES, calibrate, sweep_sizes
from edgeguard.bench.verdict import judge, overhead_of
from edgeguard.bench.worker_client import Ready
from edgeguard.board import read_fingerprint
from edgeguard.budget import Profile, load_profile
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.config import Config
from edgeguard.errors import BoundError, ModelError

BEHAVIOUR = {"passes": [10, 3, 3], "base_ms": 1, "token_ms": 0.2, "spread": 0.05, "overhead_ms": 0.5}
TYPICAL_MS = 3 * 1 + 16 * 0.2 + 0.5


def _calibrate(config: Config, **keys: Any) -> Profile:
    return calibrate(config, clock=SystemClock(), subject=fake_subject(), busy_limit=NEVER_BUSY, **keys)


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
    assert config.risk.confidence == 0.5
    assert profile.bound.percentile == 0.95  # of max_miss_rate = 0.05
    assert profile.bound.effective_n >= 14  # 0.95 ** 14 < 0.5
    assert len(profile.requests) == profile.bound.n
    assert profile.schedule.period_ns == config.timing.period_ns


def test_the_bound_is_the_dearest_price_times_the_score_and_lies_above_the_typical_request(calibrated) -> None:
    _, profile, _, _ = calibrated
    dearest_ns = max(one.dearest_ns for one in profile.requests)
    assert profile.bound.bound_ns == pytest.approx(dearest_ns * profile.bound.score, abs=1)
    assert profile.bound.bound_ns > TYPICAL_MS * NS_PER_MS


def test_progress_tells_every_phase(calibrated) -> None:
    _, _, _, heard = calibrated
    assert list(dict.fromkeys(phase for phase, _, _ in heard)) == [
        "waiting for a quiet machine", "loading", "timing passes", "asking", "measuring",
    ]  # fmt: skip
    assert all(0 <= done <= total for _, done, total in heard)


def test_a_second_start_finds_the_profile_and_starts_nothing(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR, deadline_ms=2_000)
    known: dict[str, Any] = {
        "clock": SystemClock(), "cache_dir": tmp_path / "cache", "subject": fake_subject(), "busy_limit": NEVER_BUSY,
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
        load_or_calibrate(
            config, clock=SystemClock(), cache_dir=tmp_path, subject=fake_subject(), busy_limit=NEVER_BUSY
        )
    (kept,) = (tmp_path / "calibration").iterdir()
    verdict = judge(load_profile(kept), config=config, overhead=overhead_of(config))
    assert verdict.fitting_deadline_ms > 22


def test_what_keeps_the_worker_from_starting_is_passed_on(tmp_path: Path) -> None:
    config = write_config(tmp_path, behaviour={"start": "fail"})
    with pytest.raises(ModelError, match="told to fail"):
        _calibrate(config)


CALIBRATE_FOR_LONG = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from bench_robot import NEVER_BUSY, fake_subject
from edgeguard.bench.calibrate import calibrate
from edgeguard.clock import SystemClock
from edgeguard.config import load_config
calibrate(load_config({config!r}), clock=SystemClock(), out=Path({out!r}), subject=fake_subject(),
          busy_limit=NEVER_BUSY, progress=lambda *step: print(*step, flush=True))
"""


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_calibration_leaves_the_old_profile_and_no_worker(tmp_path: Path, kill: signal.Signals) -> None:
    config = write_config(tmp_path, behaviour=BEHAVIOUR, max_miss_rate=0.001, confidence=0.99)
    out = tmp_path / "profile.json"
    out.write_text("the old one")
    script = CALIBRATE_FOR_LONG.format(tests=str(FAKE_WORKER.parent), config=str(config.file), out=str(out))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as bench:
        assert bench.stdout is not None
        assert any(line.startswith(b"measuring 10 ") for line in bench.stdout)
        bench.send_signal(kill)
        bench.communicate()
    assert out.read_text() == "the old one"
    assert not list(tmp_path.glob(".profile*"))
    until_s = time.monotonic() + 5
    while _workers_of(config.file) and time.monotonic() < until_s:
        time.sleep(0.05)
    assert _workers_of(config.file) == []


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
    assert len(swept) <= SWEEP_SIZES


def test_the_profile_is_json_that_anybody_reads(calibrated) -> None:
    _, _, out, _ = calibrated
    assert json.loads(out.read_text())["format"] == "edgeguard.calibration/1"
