"""``edgeguard calibrate --quick`` and ``edgeguard demo`` use each other's file, by the real commands.

A tiny model lies where the demo's own is built, so nothing is fetched; and nothing is timed, so that a machine may be
as busy as it likes: each command is asked where it would measure, or told to end once it has said what it has found.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from bench_robot import HASTY, fake_command, made_profile
from fake_worker import write_behaviour
from service_rig import EDGEGUARD
from tiny import tiny_model

from edgeguard.bench.calibration.cached import load_or_calibrate
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.bench.subject import Subject
from edgeguard.board import read_fingerprint
from edgeguard.budget import Schedule, load_profile
from edgeguard.clock import NS_PER_S, SystemClock
from edgeguard.config import load_config
from edgeguard.demo.story import demo_config
from edgeguard.engine.identity import joint_identity
from edgeguard.engine.ladder import read_ladder
from edgeguard.model.build import built_folder
from edgeguard.runtime.model_choice import chosen_recipe


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's cache, with the tiny model in the place of the demo's."""
    folder = tmp_path_factory.mktemp("cache")
    place = built_folder(chosen_recipe(load_config(demo_config())), cache_dir=folder)
    shutil.copytree(tiny_model(tmp_path_factory.mktemp("tiny")), place)
    return folder


@pytest.fixture(scope="module")
def subject(cache: Path) -> Subject:
    """A fake in the tiny model's place, which says that it is that."""
    config = load_config(demo_config())
    folder = built_folder(chosen_recipe(config), cache_dir=cache)
    models = read_ladder(config=config, folders=[folder])
    identity = joint_identity([(one.rungs[0].name, one.identity) for one in models])
    return Subject(command=fake_command, identity=lambda: identity)


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "EDGEGUARD_CACHE": str(cache)}


@pytest.fixture(scope="module")
def place(cache: Path) -> Path:
    """Where ``calibrate`` would write: told to go on where nothing has begun, it says which samples it misses."""
    argv = [*EDGEGUARD, "calibrate", str(demo_config()), "--quick", "--resume"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment(cache))
    assert done.returncode == 7, done.stderr
    found = re.search(rf"{re.escape(str(cache))}\S+(?=\.samples\.gz)", done.stderr)
    assert found, done.stderr
    return Path(f"{found[0]}.json")


def test_the_demo_finds_what_calibrate_has_written(cache: Path, subject: Subject, place: Path) -> None:
    schedule = Schedule(period_ns=load_config(demo_config()).timing.period_ns)
    fingerprint = {**read_fingerprint(), **subject.identity()}
    write_profile(made_profile(fingerprint=fingerprint, schedule=schedule, bound_ms=77.0), place)
    written = place.read_bytes()
    argv = [*EDGEGUARD, "demo", "--no-faults", "--cycles", "1"]
    demo = subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(cache),
        start_new_session=True,
    )
    with demo:
        assert demo.stdout is not None
        told = ""
        for line in demo.stdout:
            told += line
            if "measured" in line or "waiting for a quiet machine" in line:
                break
        os.killpg(demo.pid, signal.SIGINT)
        demo.stdout.read()
    assert "within 77 ms, at 95% confidence (measured before)" in told
    assert place.read_bytes() == written
    place.unlink()


def test_calibrate_looks_where_the_demo_has_measured(
    cache: Path, subject: Subject, place: Path, tmp_path: Path
) -> None:
    """The demo's step, on a robot that differs only in what is measured of it: less, and that would fit any machine."""
    config = load_config(demo_config())
    less = replace(config.risk, confidence=0.5, max_miss_rate=0.2)
    file = tmp_path / "robot.toml"
    file.write_text(demo_config().read_text())
    write_behaviour(file, passes=[10, 3], base_ms=1, token_ms=0.1)
    calibration = load_or_calibrate(
        replace(config, file=file, risk=less, timing=replace(config.timing, deadline_ns=600 * NS_PER_S)),
        clock=SystemClock(),
        cache_dir=cache,
        subject=subject,
        effort=replace(HASTY, fit_requests=5, sweep_repeats=1),
    )
    assert calibration.fresh
    assert calibration.file == place
    assert load_profile(place) == calibration.verdict.profile
    other = tmp_path / "elsewhere"
    shutil.copytree(cache, other)
    samples = next((other / "calibration").glob("*.samples.gz"))
    argv = [*EDGEGUARD, "calibrate", str(demo_config()), "--quick", "--resume"]
    samples.write_bytes(b"no samples any more")
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment(other))
    assert done.returncode == 7
    assert f"{samples}: " in done.stderr, "it goes on with the demo's samples, or says why not"
