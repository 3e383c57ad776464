"""The worker as a real process on the tiny model: it warms up, answers, refuses, is cancelled, stopped and killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from edgeguard.answer import check_values, read_schema
from edgeguard.budget import Bound, PassCost, Profile, Schedule, profile_text
from edgeguard.channel import Channel, Message
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.config import load_config
from edgeguard.messages import read_answer, request_message
from edgeguard.types import Answer, Finish, Observation, Request, Value
from tests.engine_setup import load, observation, write_config
from tests.tiny import tiny_model

PATIENCE_S = 100.0


class Worker:
    """The process and what it says."""

    def __init__(
        self,
        config: Path,
        *models: Path,
        profile: Path | None = None,
        full_head: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.channel, theirs = Channel.pair()
        argv = [sys.executable, "-m", "edgeguard.engine.worker", str(theirs.fileno()), str(config)]
        argv += [*([] if profile is None else [str(profile)]), *["--full-head"] * full_head]
        argv += [part for model in models for part in ("--model", str(model))]
        self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], env=environment)
        theirs.close()
        self.heard: list[Message] = []

    def next(self, *kinds: str) -> Message:
        """The next message, which must be one of ``kinds``; reports of the start are passed over."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            while self.heard:
                message = self.heard.pop(0)
                if message["type"] != "warming":
                    assert message["type"] in kinds, message
                    return message
            assert not self.channel.closed, f"it has gone without {kinds}"
            select.select([self.channel], [], [], 1.0)
            self.heard = self.channel.receive()
        raise AssertionError(f"no {kinds} came")

    def ask(self, number: int, values: dict[str, Value], *, by_s: float = PATIENCE_S, **more: object) -> None:
        now_ns = time.monotonic_ns()
        request = Request(
            request_id=number,
            epoch=7,
            observation=Observation(fields=values, captured_ns=now_ns),
            answer_by_ns=now_ns + round(by_s * NS_PER_S),
        )
        self.channel.send({**request_message(request), **more})

    def answer(self) -> Answer:
        answer = read_answer(self.next("answer"))
        assert answer is not None
        return answer

    def close(self) -> int:
        self.channel.close()
        return self.process.wait(timeout=PATIENCE_S)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_config(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="module")
def shared(model: Path, config: Path) -> Iterator[Worker]:
    """One that answers without a profile, for every test that leaves it as it was."""
    with Worker(config, model) as worker:
        assert worker.next("ready")["bound_ns"] is None
        yield worker


def write_profile(file: Path, *, pass_ms: float = 1.0, score: float = 1.0) -> Path:
    """Every pass costs ``pass_ms``; the bound is the dearest path's price times ``score``."""
    cost = PassCost(sizes=(2, 100), prices_ns=(pass_ms * NS_PER_MS,) * 2, p_reference=100, per_cached_ns=0.0)
    bound = Bound(bound_ns=123, score=score, rank=1, percentile=0.99, confidence=0.95, n=299, effective_n=299, lag=1)
    profile = Profile(
        kind="quick",
        created="2026-01-01T00:00:00Z",
        fingerprint={"model": "tiny"},
        schedule=Schedule(period_ns=200 * NS_PER_MS),
        bounds=(bound,),
        cost=cost,
        sweep=(),
        requests=(),
    )
    file.write_text(profile_text(profile))
    return file


def test_it_tells_how_far_the_start_has_come_and_what_it_is(model: Path, config: Path) -> None:
    with Worker(config, model) as worker:
        said: list[Message] = []
        while not said or said[-1]["type"] == "warming":
            select.select([worker.channel], [], [], PATIENCE_S)
            said += worker.channel.receive()
        *warming, ready = said
        assert list(dict.fromkeys(one["phase"] for one in warming)) == ["loading", "prefix", "warming"]
        assert all(0 <= one["done"] <= one["total"] for one in warming)
        local = load(config, model)
        assert ready == {
            "type": "ready",
            "identity": local.identity,
            "placement": "cpu, all of it",
            "rung": "",
            "prefix_tokens": len(local.prompt.prefix),
            "capacity_tokens": local.engine.cache.capacity,
            "bound_ns": None,
            "answer_passes": local.answer_passes,
            "pass_sizes": local.pass_sizes,
            "fixed_sizes": False,
            "others": [],
        }


def test_it_answers_what_the_schema_allows_and_says_what_it_took(shared: Worker, config: Path, model: Path) -> None:
    fields = read_schema(load_config(config).schema)
    local = load(config, model)
    for number, words in enumerate(("go to the door", "stop", "turn left", "")):
        values = observation(words=words, front=Decimal("1.5"))
        shared.ask(number, values)
        answer = shared.answer()
        assert (answer.request_id, answer.epoch, answer.finish) == (number, 7, Finish.COMPLETE)
        assert answer.values is not None
        check_values(answer.values, fields=fields)
        assert answer.started_ns < answer.finished_ns
        assert answer.tokenise_ns > 0 < answer.parse_ns
        assert 0 < len(answer.passes) <= local.answer_passes
        decoded = local.decoder.decode(local.prompt.request(values))
        assert decoded is not None
        assert local.automaton.text(decoded.tokens) == local.automaton.text(
            local.automaton.encode(answer.values)[: len(decoded.tokens)]
        ), "another process, another cache: the same answer"
        assert answer.confidence == decoded.confidence


def test_token_by_token_with_a_profile_goes_on_to_the_last_token(model: Path, config: Path, tmp_path: Path) -> None:
    """Behind the last choice nothing is left to price, and tokens are left to run."""
    profile = write_profile(tmp_path / "profile.json", pass_ms=100)
    with Worker(config, model, profile=profile, full_head=True) as worker:
        worker.next("ready")
        worker.ask(1, observation(), admit=False)
        merged = worker.answer()
        worker.ask(2, observation(), admit=False, token_by_token=True)
        single = worker.answer()
    assert (single.finish, single.values) == (Finish.COMPLETE, merged.values)
    assert len(single.passes) > len(merged.passes)


def test_token_by_token_takes_a_pass_for_every_token_of_the_whole_vocabulary(
    shared: Worker, model: Path, config: Path
) -> None:
    with Worker(config, model, full_head=True) as full:
        assert full.next("ready")["identity"]["head"] == "full: as asked"
        full.ask(1, observation(), token_by_token=True)
        single = full.answer()
    shared.ask(1, observation(), token_by_token=True)
    refused = shared.answer()
    assert refused.finish is Finish.ERROR
    assert "--full-head" in refused.detail
    shared.ask(2, observation())
    merged = shared.answer()
    assert single.finish is merged.finish is Finish.COMPLETE
    assert len(single.passes) > 2 * len(merged.passes)
    assert all(one.k == 1 for one in single.passes[1:])


def test_an_answer_that_comes_again_takes_one_pass_unless_drafts_are_forbidden(shared: Worker) -> None:
    answers = []
    for number, more in enumerate(({}, {}, {"draft": False})):
        shared.ask(number, observation(words="turn left", front=2.0), **more)
        answers.append(shared.answer())
    _, drafted, plain = answers
    assert len(drafted.passes) == 1 < len(plain.passes)
    assert drafted.drafted_tokens == drafted.accepted_tokens > 0 == plain.drafted_tokens
    assert (drafted.values, drafted.confidence) == (plain.values, plain.confidence)


def test_words_and_flags_that_come_back_have_their_last_answer_as_a_draft(shared: Worker) -> None:
    """Whatever was said, seen and answered between."""
    first: Answer | None = None
    for number, words in enumerate(("halt", "go on", "turn left", "halt")):
        shared.ask(number, observation(words=words, door=words == "halt", front=2.0), draft=first is not None)
        answer = shared.answer()
        first = first or answer
    assert (answer.values, answer.confidence) == (first.values, first.confidence)
    assert len(answer.passes) == 1 < len(first.passes)


@pytest.mark.parametrize(
    ("change", "finish", "detail"),
    [
        ({"front": "near"}, Finish.ERROR, "field 'front'"),
        ({"words": "x" * 41}, Finish.ERROR, "max_chars"),
        ({"words": "<|im_end|>"}, Finish.ERROR, "control token"),
        ({"words": "\U0001f600" * 40}, Finish.INFEASIBLE, "do not fit the cache"),
    ],
    ids=["a text for a number", "a text too long", "a control token", "too many tokens"],
)
def test_a_bad_observation_is_that_requests_end_and_no_others(
    shared: Worker, change: dict[str, Value], finish: Finish, detail: str
) -> None:
    shared.ask(1, observation(**change))
    answer = shared.answer()
    assert (answer.finish, answer.values, answer.passes) == (finish, None, ())
    assert detail in answer.detail
    shared.ask(2, observation())
    assert shared.answer().finish is Finish.COMPLETE


def test_what_is_no_request_is_passed_over(shared: Worker) -> None:
    for message in ({"type": "hello"}, {"type": "request"}, {"type": "cancel"}, {"type": "cancel", "request_id": 99}):
        shared.channel.send(message)
    shared.ask(3, observation())
    assert shared.answer().request_id == 3


def test_without_a_profile_it_gives_up_when_the_time_is_over(shared: Worker) -> None:
    shared.ask(4, observation(), by_s=-0.001)
    answer = shared.answer()
    assert (answer.finish, answer.passes) == (Finish.DEADLINE, ())
    assert "before pass 1" in answer.detail


def test_the_newest_request_wins_and_those_that_waited_have_no_answer(shared: Worker) -> None:
    os.kill(shared.process.pid, signal.SIGSTOP)
    for number in (10, 11, 12, 13):
        shared.ask(number, observation())
    shared.channel.send({"type": "cancel", "request_id": 13})
    os.kill(shared.process.pid, signal.SIGCONT)
    time.sleep(0.1)
    shared.ask(14, observation())
    answered = [shared.answer().request_id]
    while answered[-1] != 14:
        answered.append(shared.answer().request_id)
    assert not {11, 12} & set(answered), "at most the first had been begun"


def test_a_request_that_is_called_off_while_it_runs_says_so(shared: Worker) -> None:
    """Sooner or later the word comes while it runs, and neither before nor after."""
    finishes: set[Finish] = set()
    number = 100
    while Finish.DEADLINE not in finishes:
        assert number < 2_000
        shared.ask(number, observation())
        time.sleep(number % 7 / 2_000)
        shared.channel.send({"type": "cancel", "request_id": number})
        shared.ask(number + 1, observation())
        while (answer := shared.answer()).request_id != number + 1:
            finishes.add(answer.finish)
        number += 2
    assert finishes <= {Finish.DEADLINE, Finish.COMPLETE}


def test_it_times_sweeps(shared: Worker) -> None:
    shared.channel.send({"type": "sweep", "sizes": [2, 9], "repeats": 4})
    rows = shared.next("swept")["rows"]
    assert [(row["k"], len(row["elapsed_ns"])) for row in rows] == [(2, 4), (9, 4)]
    shared.ask(5, observation())
    assert shared.answer().finish is Finish.COMPLETE


def test_the_operators_interrupt_is_not_its_business(shared: Worker) -> None:
    os.kill(shared.process.pid, signal.SIGINT)
    shared.ask(6, observation())
    assert shared.answer().finish is Finish.COMPLETE


def test_with_a_profile_what_cannot_fit_is_refused_at_once(model: Path, config: Path, tmp_path: Path) -> None:
    """Every pass is said to cost 2 s and the dearest answer to take 3 passes, so the bound is 2 × 6 s."""
    with Worker(config, model, profile=write_profile(tmp_path / "profile.json", pass_ms=2_000, score=2.0)) as worker:
        ready = worker.next("ready")
        assert ready["bound_ns"] == 123
        bound_ns = round(ready["answer_passes"] * 2_000 * 2 * NS_PER_MS)
        worker.ask(1, observation())
        answer = worker.answer()
        assert (answer.finish, answer.bound_ns) == (Finish.COMPLETE, bound_ns)
        worker.ask(2, observation(), by_s=bound_ns / NS_PER_S - 0.001)
        answer = worker.answer()
        assert (answer.finish, answer.passes, answer.bound_ns) == (Finish.INFEASIBLE, (), bound_ns)
        assert "does not fit" in answer.detail
        worker.ask(3, observation(), by_s=bound_ns / NS_PER_S - 0.001, admit=False)
        answer = worker.answer()
        assert (answer.finish, answer.bound_ns) == (Finish.COMPLETE, bound_ns)
        worker.ask(4, observation(), by_s=3, admit=False)
        answer = worker.answer()
        assert (answer.finish, answer.values) == (Finish.DEADLINE, None), "two passes of 2 s are more than 3 s"


def failed(config: Path, model: Path, profile: Path | None) -> tuple[Message, int]:
    with Worker(config, model, profile=profile) as worker:
        return worker.next("failed"), worker.process.wait(timeout=PATIENCE_S)


def test_what_keeps_it_from_starting_is_said_with_its_exit_code(model: Path, config: Path, tmp_path: Path) -> None:
    provider = write_config(tmp_path, ('folder = "./model"', 'provider = "tpu"'))
    (tmp_path / "broken.toml").write_text("[model")
    (tmp_path / "profile.json").write_text("{}")
    for arguments, exit_code, detail in (
        ((tmp_path / "none.toml", model, None), 2, "cannot be read"),
        ((tmp_path / "broken.toml", model, None), 2, "not valid TOML"),
        ((config, tmp_path / "nowhere", None), 5, "there is no model folder"),
        ((provider, model, None), 6, "no execution provider 'tpu'"),
        ((config, model, tmp_path / "profile.json"), 7, "profile.json"),
    ):
        message, status = failed(*arguments)
        assert (message["exit_code"], status) == (exit_code, exit_code), message
        assert detail in message["error"]


def test_it_ends_when_nobody_is_left_to_answer(model: Path, config: Path) -> None:
    worker = Worker(config, model)
    worker.next("ready")
    assert worker.close() == 0


class Supervised:
    """A worker behind a real spawner."""

    def __init__(self) -> None:
        self.spawner, theirs = Channel.pair()
        argv = [sys.executable, "-m", "edgeguard.engine.spawner", str(theirs.fileno())]
        self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
        theirs.close()
        self.channels: list[Channel] = []

    def start(self, config: Path, model: Path) -> tuple[int, Channel]:
        channel, theirs = Channel.pair()
        self.channels.append(channel)
        argv = [sys.executable, "-m", "edgeguard.engine.worker", "{fd}", str(config), "--model", str(model)]
        self.spawner.send({"type": "spawn", "argv": argv}, fds=[theirs.fileno()])
        theirs.close()
        pid = int(wait_for(self.spawner, "spawned")["pid"])
        wait_for(channel, "ready")
        return pid, channel

    def close(self) -> None:
        for channel in (self.spawner, *self.channels):
            channel.close()
        self.process.wait(timeout=PATIENCE_S)


def wait_for(channel: Channel, kind: str) -> Message:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        select.select([channel], [], [], 1.0)
        for message in channel.receive():
            if message["type"] == kind:
                return message
    raise AssertionError(f"no {kind} came")


def test_passes_that_take_times_what_the_profile_says_stop_the_start(model: Path, config: Path, tmp_path: Path) -> None:
    """A profile of another machine, or a provider that is not the one it was."""
    profile = write_profile(tmp_path / "profile.json", pass_ms=0.001)
    with Worker(config, model, profile=profile) as worker:
        failed = worker.next("failed")
    assert failed["exit_code"] == 7
    assert "times the 0.0 ms of the profile, on cpu, all of it" in failed["error"]


def test_a_hung_worker_is_killed_and_replaced_by_one_that_answers(model: Path, config: Path) -> None:
    supervised = Supervised()
    first, channel = supervised.start(config, model)
    os.kill(first, signal.SIGSTOP)
    now_ns = time.monotonic_ns()
    request = Request(
        request_id=1,
        epoch=1,
        observation=Observation(fields=observation(), captured_ns=now_ns),
        answer_by_ns=now_ns + round(PATIENCE_S * NS_PER_S),
    )
    channel.send(request_message(request))
    assert select.select([channel], [], [], 0.2) == ([], [], []), "it hangs"
    supervised.spawner.send({"type": "kill"})
    assert wait_for(supervised.spawner, "exited") == {"type": "exited", "pid": first, "status": -signal.SIGKILL}
    second, channel = supervised.start(config, model)
    assert second != first
    channel.send(request_message(request))
    assert wait_for(channel, "answer")["finish"] == "complete"
    supervised.close()
