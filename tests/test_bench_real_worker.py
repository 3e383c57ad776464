"""The real worker on the bench, with a tiny model: the pieces that a fake cannot stand for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench_robot import HASTY
from engine_setup import observation, write_config
from tiny import tiny_model

from edgeguard.bench.calibration.cached import Calibration, load_or_calibrate
from edgeguard.bench.subject import Subject, model_subject
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.board import read_fingerprint
from edgeguard.clock import NS_PER_S, SystemClock
from edgeguard.config import Config, load_config
from edgeguard.model.progress import silent
from edgeguard.types import Finish, Observation, Request

CLOCK = SystemClock()


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> tuple[Config, Subject]:
    folder = tmp_path_factory.mktemp("robot")
    model = tiny_model(folder)
    timing = "[timing]\nperiod_ms = 40\ndeadline_ms = 5_000\n[budget]\nconfidence = 0.5\nmax_miss_rate = 0.05\n[model]"
    config = load_config(write_config(folder, ("[model]", timing), ("./model", str(model))))
    return config, model_subject(config)


@pytest.fixture(scope="module")
def calibration(robot: tuple[Config, Subject], tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    config, subject = robot
    cache = tmp_path_factory.mktemp("cache")
    return load_or_calibrate(config, clock=CLOCK, cache_dir=cache, subject=subject, effort=HASTY)


@pytest.fixture(scope="module")
def client(robot: tuple[Config, Subject], calibration: Calibration) -> Iterator[WorkerClient]:
    config, subject = robot
    with WorkerClient.start(argv=subject.command(config.file, calibration.file), clock=CLOCK) as client:
        yield client


def test_what_the_worker_says_it_is_was_known_without_starting_it(
    robot: tuple[Config, Subject], calibration: Calibration
) -> None:
    _, subject = robot
    assert calibration.fresh
    profile = calibration.verdict.profile
    assert profile.differences({**read_fingerprint(), **subject.identity()}) == []
    assert profile.placement == "cpu, all of it", "which is known once it has started"


def test_the_bound_is_no_less_than_what_a_request_took(calibration: Calibration) -> None:
    profile = calibration.verdict.profile
    assert all(one.dearest_ns > 0.5 * one.price_ns for one in profile.requests)
    typical_ns = sorted(one.latency_ns for one in profile.requests)[len(profile.requests) // 2]
    assert profile.bound.bound_ns >= typical_ns


def test_the_next_start_finds_it(robot: tuple[Config, Subject], calibration: Calibration) -> None:
    config, subject = robot
    cache = calibration.file.parent.parent
    again = load_or_calibrate(config, clock=CLOCK, cache_dir=cache, subject=subject, effort=HASTY)
    assert not again.fresh
    assert again.verdict.profile == calibration.verdict.profile


def test_a_worker_with_the_profile_admits_what_fits_and_refuses_what_does_not(
    client: WorkerClient, calibration: Calibration
) -> None:
    ready = client.wait_ready(progress=silent)
    assert ready.bound_ns == calibration.verdict.profile.bound.bound_ns
    for request_id, (left_ns, finish) in enumerate([(5 * NS_PER_S, Finish.COMPLETE), (1, Finish.INFEASIBLE)]):
        now_ns = CLOCK.now_ns()
        request = Request(
            request_id=request_id,
            epoch=0,
            observation=Observation(fields=observation(), captured_ns=now_ns),
            answer_by_ns=now_ns + left_ns,
        )
        answer = client.ask(request, admit=True, limit_ns=10 * NS_PER_S).answer
        assert answer.finish is finish
        assert answer.bound_ns is not None


def test_both_ways_of_decoding_give_an_answer(client: WorkerClient, robot: tuple[Config, Subject]) -> None:
    """Token by token of a worker with the full head, as the comparisons start it."""
    config, subject = robot
    argv = [*subject.command(config.file, None), "--full-head"]
    passes = []
    with WorkerClient.start(argv=argv, clock=CLOCK) as full:
        full.wait_ready(progress=silent)
        for request_id, asked in ((10, client), (11, full)):
            now_ns = CLOCK.now_ns()
            request = Request(
                request_id=request_id,
                epoch=0,
                observation=Observation(fields=observation(), captured_ns=now_ns),
                answer_by_ns=now_ns + 5 * NS_PER_S,
            )
            reply = asked.ask(request, admit=False, limit_ns=10 * NS_PER_S, token_by_token=asked is full)
            assert reply.answer.finish is Finish.COMPLETE
            passes.append(len(reply.answer.passes))
    assert passes[0] < passes[1]


def test_passes_of_fixed_sizes_are_the_only_ones_that_are_measured_and_what_others_cost(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("fixed")
    timing = "[timing]\nperiod_ms = 40\ndeadline_ms = 5_000\n[budget]\nconfidence = 0.5\nmax_miss_rate = 0.05\n[model]"
    shapes = f'"{tiny_model(folder)}"\nshapes = "sizes"'
    config = load_config(write_config(folder, ("[model]", timing), ('"./model"', shapes)))
    profile = load_or_calibrate(config, clock=CLOCK, cache_dir=folder, effort=HASTY).verdict.profile
    sizes = profile.cost.sizes
    assert {times.k for times in profile.sweep} == set(sizes) == {2**power for power in range(1, len(sizes) + 1)}
    assert {one.first_tokens for one in profile.requests} <= set(sizes)
    assert profile.cost.price_ns(5, 100) == profile.cost.price_ns(8, 100)
