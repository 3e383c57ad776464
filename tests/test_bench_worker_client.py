"""A worker of one's own: every way in which it can end or fall silent is an error that says so. Real processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from bench_robot import fake_command, write_config
from fake_worker import write_behaviour

from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock
from edgeguard.errors import ModelError, WorkerError
from edgeguard.model.progress import silent
from edgeguard.types import Finish, Observation, Request

CLOCK = SystemClock()
PATIENCE_NS = 20 * NS_PER_S
_ids = count(1)


@contextmanager
def _worker(folder: Path, **behaviour: Any) -> Iterator[WorkerClient]:
    config = write_config(folder, behaviour={"passes": [8, 2], "base_ms": 1, **behaviour})
    with WorkerClient.start(argv=fake_command(config.file, None), clock=CLOCK) as client:
        yield client


def _request(answer_within_ns: int = NS_PER_S) -> Request:
    now_ns = CLOCK.now_ns()
    observation = Observation(fields={"said": "go"}, captured_ns=now_ns)
    return Request(request_id=next(_ids), epoch=0, observation=observation, answer_by_ns=now_ns + answer_within_ns)


def test_it_becomes_ready_answers_and_sweeps(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    with _worker(tmp_path) as client:
        ready = client.wait_ready(progress=lambda *step: heard.append(step))
        assert (ready.identity, ready.prefix_tokens, ready.bound_ns) == ({"model": "fake"}, 100, None)
        assert ready.pass_sizes == tuple(range(2, 9))
        assert heard == [("loading", 0, 1)]
        request = _request()
        reply = client.ask(request, admit=False, limit_ns=PATIENCE_NS)
        assert (reply.answer.finish, reply.answer.values) == (Finish.COMPLETE, {"go": "forward"})
        assert [(one.k, one.p) for one in reply.answer.passes] == [(8, 100), (2, 108)]
        assert request.observation.captured_ns < reply.answer.finished_ns <= reply.received_ns
        rows = client.sweep(sizes=[2, 8], repeats=3, limit_ns=PATIENCE_NS)
        assert [(row.k, row.p, len(row.elapsed_ns)) for row in rows] == [(2, 100, 3), (8, 100, 3)]


@pytest.mark.parametrize("fault", ["garbage", "foreign", "twice"])
def test_nonsense_around_an_answer_does_not_disturb_it(tmp_path: Path, fault: str) -> None:
    with _worker(tmp_path, faults={"1": fault}) as client:
        client.wait_ready(progress=silent)
        for _ in range(3):
            request = _request()
            reply = client.ask(request, admit=False, limit_ns=PATIENCE_NS)
            assert reply.answer.request_id == request.request_id


@pytest.mark.parametrize(
    ("start", "error", "words"),
    [
        ("fail", ModelError, "the fake was told to fail"),
        ("crash", WorkerError, r"ended with status -9 before it was ready \(it was at: loading\)"),
        ("hang", WorkerError, r"not ready \(it was at: (loading|starting)\) in time"),
    ],
)
def test_a_worker_that_does_not_become_ready_says_why(
    tmp_path: Path, start: str, error: type[Exception], words: str
) -> None:
    with _worker(tmp_path, start=start) as client, pytest.raises(error, match=words):
        client.wait_ready(progress=silent, limit_ns=1_500 * NS_PER_MS if start == "hang" else PATIENCE_NS)


def test_a_worker_that_cannot_even_be_started_says_so() -> None:
    with (
        WorkerClient.start(argv=["/nowhere/at/all", "{fd}"], clock=CLOCK) as client,
        pytest.raises(WorkerError, match=r"/nowhere/at/all.*before it was ready"),
    ):
        client.wait_ready(progress=silent)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("crash", "ended with status -9 before it was done"),
        ("exit", "ended with status 0 before it was done"),
        ("hang", "not done with request .* in time"),
        ("silent", "not done with request .* in time"),
    ],
)
def test_a_request_that_is_not_answered_ends_in_an_error(tmp_path: Path, fault: str, words: str) -> None:
    with _worker(tmp_path, faults={"1": fault}) as client:
        client.wait_ready(progress=silent)
        with pytest.raises(WorkerError, match=words):
            client.ask(_request(), admit=False, limit_ns=400 * NS_PER_MS)


def test_a_worker_may_be_asked_to_decide_about_admission(tmp_path: Path) -> None:
    with _worker(tmp_path, bound_ms=500) as client:
        client.wait_ready(progress=silent)
        refused = client.ask(_request(answer_within_ns=100 * NS_PER_MS), admit=True, limit_ns=PATIENCE_NS)
        answered = client.ask(_request(answer_within_ns=100 * NS_PER_MS), admit=False, limit_ns=PATIENCE_NS)
    assert (refused.answer.finish, answered.answer.finish) == (Finish.INFEASIBLE, Finish.COMPLETE)


def test_the_behaviour_of_the_fake_changes_while_it_runs(tmp_path: Path) -> None:
    with _worker(tmp_path) as client:
        client.wait_ready(progress=silent)
        write_behaviour(tmp_path / "robot.toml", passes=[4], values=[{"go": "stop"}])
        answer = client.ask(_request(), admit=False, limit_ns=PATIENCE_NS).answer
    assert (len(answer.passes), answer.values) == (1, {"go": "stop"})
