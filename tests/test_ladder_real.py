"""A ladder of plans of two real models, calibrated and then asked: each by its own prices, whatever else computes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench_robot import HASTY
from engine_setup import observation, write_config
from real import REAL

from edgeguard.bench.calibration.calibrate import calibrate
from edgeguard.bench.calibration.verdict import judge, overhead_of
from edgeguard.bench.subject import Subject, model_subject
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.budget import Profile, load_profile
from edgeguard.clock import NS_PER_S, SystemClock
from edgeguard.config import Config, load_config
from edgeguard.model.progress import silent
from edgeguard.types import Finish, Observation, Request

CLOCK = SystemClock()
BUDGET = (
    "[timing]\nperiod_ms = 250\ndeadline_ms = 20_000\n[budget]\nconfidence = 0.5\nmax_miss_rate = 0.3\n"
    f'[[plan]]\nname = "exact"\n[[plan]]\nname = "rounded"\nfolder = "{REAL}:q4"\n[model]'
)
PATIENCE_NS = 60 * NS_PER_S

EFFORT = replace(HASTY, limit_ns=PATIENCE_NS, sweep_repeats=1, fit_requests=10)

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Subject, Path]:
    folder = tmp_path_factory.mktemp("ladder")
    config = load_config(write_config(folder, ("[model]", BUDGET), ("./model", f"{REAL}:q4-exact")))
    subject, out = model_subject(config), folder / "robot.profile.json"
    calibrate(config, clock=CLOCK, out=out, effort=EFFORT, subject=subject)
    return config, subject, out


@pytest.fixture(scope="module")
def profile(calibrated: tuple[Config, Subject, Path]) -> Profile:
    return load_profile(calibrated[2])


def test_each_plan_has_a_bound_by_the_prices_of_its_own_model(profile: Profile) -> None:
    assert profile.rungs == ("exact", "rounded")
    (other,) = profile.others
    assert other.rungs == ("rounded",)
    assert other.sweep != profile.sweep
    for rung in profile.rungs:
        asked = [one for one in profile.requests if one.rung == rung]
        assert len(asked) >= 2, "0.7 ** 2 < 0.5"
        assert all(one.price_ns >= profile.cost_of(rung).constant_ns for one in asked)
        assert all(bound.bound_ns > 0 for bound in profile.bounds if bound.rung == rung)


def test_the_two_are_told_apart_in_the_fingerprint(calibrated: tuple[Config, Subject, Path], profile: Profile) -> None:
    _, subject, _ = calibrated
    assert profile.differences({**profile.fingerprint, **subject.identity()}) == []
    names = [key for key in subject.identity() if "rounded" in key]
    assert names, subject.identity()


def test_the_verdict_has_a_row_for_each(calibrated: tuple[Config, Subject, Path], profile: Profile) -> None:
    config, _, _ = calibrated
    rows = judge(profile, config=config, overhead=overhead_of(config)).rows()
    assert [words.split(",")[0] for name, words in rows if name == "plan"] == ["'exact' fits", "'rounded' fits"]


def test_the_best_runs_where_it_fits_and_each_answers_when_it_is_named(
    calibrated: tuple[Config, Subject, Path],
) -> None:
    config, subject, file = calibrated
    with WorkerClient.start(argv=subject.command(config.file, file), clock=CLOCK) as client:
        client.wait_ready(progress=silent)
        for number, (named, answers) in enumerate([("", "exact"), ("rounded", "rounded"), ("exact", "exact")]):
            now_ns = CLOCK.now_ns()
            request = Request(
                request_id=number,
                epoch=0,
                observation=Observation(fields=observation(), captured_ns=now_ns),
                answer_by_ns=now_ns + PATIENCE_NS,
            )
            answer = client.ask(request, admit=True, limit_ns=PATIENCE_NS, rung=named).answer
            assert (answer.finish, answer.rung) == (Finish.COMPLETE, answers)
            assert answer.bound_ns
