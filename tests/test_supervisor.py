"""One worker is kept alive, replaced, backed off and given up, by real processes, without ever waiting for them."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_worker import write_behaviour
from patience import wait_for

from edgeguard.clock import NS_PER_S, SystemClock
from edgeguard.engine.spawner import LOG_BYTES
from edgeguard.guard.interface import Promise, WorkerPhase
from edgeguard.runtime.parts import WORKER_LOG, open_worker_log
from edgeguard.runtime.supervisor import GONE_WITHIN_NS, Supervisor
from edgeguard.types import Answer, Finish, Observation, Request

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")
CONFIG = """
[prompt]
user = "{n}"
[answer.schema]
properties = { speed = { enum = ["slow", "fast"] } }
[[field]]
name = "n"
[[axis]]
name = "linear"
source = { field = "speed", values = { slow = 0.1, fast = 0.5 } }
min = 0
max = 1
rate_up = 1
[[rule]]
name = "stop"
"""

GIVES_UP = """
import json, pathlib, socket, sys, time
peer = socket.socket(fileno=int(sys.argv[1]))
for message in ({"type": "failed", "error": "no such model", "exit_code": 5}, {"type": "ready"}):
    peer.send(json.dumps(message).encode())
pathlib.Path(sys.argv[2]).touch()
time.sleep(float(sys.argv[3]))
"""

CHATTERS = """
import os, time
os.write(2, b"x" * (3 << 20))
while os.fstat(2).st_size:
    time.sleep(0.01)
os.write(2, b"the end")
time.sleep(600)
"""

PROMISE = Promise(bounds_ns=(80_000_000,), alpha=0.01, lag=1, observed=True)


class Station:
    """A supervisor under test, polled as a tick would."""

    def __init__(self, config: Path, *, failures_allowed: int) -> None:
        self.config = config
        self.clock = SystemClock()
        argv = [sys.executable, str(FAKE_WORKER), "{fd}", str(config)]
        self.supervisor = Supervisor(argv=argv, failures_allowed=failures_allowed, promise=PROMISE)
        self.answers: list[Answer] = []

    def until(self, condition) -> None:
        def look() -> object:
            self.answers += self.supervisor.poll(self.clock.now_ns())
            return condition()

        wait_for(look, "it comes", stands=lambda: self.supervisor.status, pause_s=0.002)

    @property
    def worker(self) -> int:
        """Its process; the spawner says which that is, perhaps after the worker has said that it is ready."""
        self.until(lambda: self.supervisor.pid is not None)
        return self.supervisor.pid

    def until_phase(self, phase: WorkerPhase) -> None:
        self.until(lambda: self.supervisor.status.phase is phase)

    def ask(self, request_id: int, *, within_s: float = 1.0) -> None:
        now_ns = self.clock.now_ns()
        observation = Observation(fields={"n": 1}, captured_ns=now_ns)
        answer_by_ns = now_ns + int(within_s * NS_PER_S)
        assert self.supervisor.ask(
            Request(request_id=request_id, epoch=1, observation=observation, answer_by_ns=answer_by_ns)
        )


def wakes(supervisor: Supervisor) -> bool:
    """Whether there is something to take, for which the guard's wait would end at once."""
    return bool(select.select(supervisor.filenos, [], [], 0)[0])


@pytest.fixture
def station(tmp_path) -> Iterator[Station]:
    config = tmp_path / "robot.toml"
    config.write_text(CONFIG)
    station = Station(config, failures_allowed=3)
    yield station
    station.supervisor.close()


def test_a_worker_starts_and_answers_and_its_calibration_is_stated(station):
    station.until_phase(WorkerPhase.READY)
    assert station.supervisor.status.promise == PROMISE
    station.ask(5)
    station.until(lambda: station.answers)
    assert (station.answers[0].request_id, station.answers[0].finish) == (5, Finish.COMPLETE)
    assert station.answers[0].values == {"speed": "slow"}


def test_a_killed_worker_is_replaced_by_another_process(station):
    station.until_phase(WorkerPhase.READY)
    first = station.worker
    os.kill(first, signal.SIGKILL)
    station.until_phase(WorkerPhase.GONE)
    station.until_phase(WorkerPhase.READY)
    assert station.worker != first
    assert station.supervisor.starts == 2


def test_a_stopped_worker_is_killed_on_request_and_seen_gone_before_the_next_starts(station):
    station.until_phase(WorkerPhase.READY)
    first = station.worker
    os.kill(first, signal.SIGSTOP)
    station.supervisor.restart("it hung")
    assert station.supervisor.status.phase is WorkerPhase.GONE
    station.until(lambda: station.supervisor.starts == 2)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    station.until_phase(WorkerPhase.READY)


def test_a_worker_that_fails_again_and_again_is_given_up_until_the_operator_says_so(station):
    write_behaviour(station.config, start="crash")
    station.until_phase(WorkerPhase.UNAVAILABLE)
    assert station.supervisor.starts == 3
    assert "3 failures in a row" in station.supervisor.status.detail
    write_behaviour(station.config)
    station.supervisor.retry()
    station.until_phase(WorkerPhase.READY)


def test_a_worker_that_says_why_it_cannot_start_is_not_tried_again(station):
    write_behaviour(station.config, start="fail")
    station.until_phase(WorkerPhase.UNAVAILABLE)
    assert station.supervisor.starts == 1
    assert station.supervisor.status.detail


def test_nothing_wakes_the_guard_for_a_worker_that_was_given_up(station):
    write_behaviour(station.config, start="fail")
    station.until_phase(WorkerPhase.UNAVAILABLE)
    why = station.supervisor.status.detail
    station.until(lambda: station.supervisor.pid is None and not wakes(station.supervisor))
    os.kill(station.supervisor._spawner.pid, signal.SIGKILL)
    station.until(lambda: not station.supervisor.filenos)
    assert station.supervisor.starts == 1
    assert station.supervisor.status.detail == why
    write_behaviour(station.config)
    station.supervisor.retry()
    station.until_phase(WorkerPhase.READY)


def test_the_death_of_the_spawner_takes_the_worker_along_and_is_no_exception(station):
    station.until_phase(WorkerPhase.READY)
    worker = station.worker
    os.kill(station.supervisor._spawner.pid, signal.SIGKILL)
    station.until_phase(WorkerPhase.UNAVAILABLE)
    station.until(lambda: not alive(worker))
    assert station.supervisor.pid is None
    station.supervisor.retry()
    station.until_phase(WorkerPhase.READY)


def test_a_spawner_that_has_hung_up_and_lives_on_is_waited_for_by_nobody(station):
    station.until_phase(WorkerPhase.READY)
    os.kill(station.supervisor._spawner.pid, signal.SIGSTOP)
    station.supervisor._spawner_channel._socket.shutdown(socket.SHUT_RDWR)
    station.until_phase(WorkerPhase.UNAVAILABLE)
    station.supervisor.retry()
    station.supervisor.poll(station.clock.now_ns())
    assert station.supervisor.starts == 1, "nobody has waited for it"
    station.until_phase(WorkerPhase.READY)
    assert station.supervisor.starts == 2


def test_a_spawner_that_is_stopped_and_kills_nobody_goes_and_its_worker_with_it(station):
    station.until_phase(WorkerPhase.READY)
    worker = station.worker
    os.kill(worker, signal.SIGSTOP)
    os.kill(station.supervisor._spawner.pid, signal.SIGSTOP)
    now_ns = station.clock.now_ns()
    station.supervisor.restart("it hung")
    for later_ns in (0, GONE_WITHIN_NS - 1, GONE_WITHIN_NS):
        assert station.supervisor.status.phase is WorkerPhase.GONE
        station.supervisor.poll(now_ns + later_ns)
    assert station.supervisor.status.phase is WorkerPhase.UNAVAILABLE
    assert station.supervisor.status.detail == "it hung; it has not gone within 30 s"
    assert not station.supervisor.filenos
    station.until(lambda: not alive(worker))
    station.supervisor.retry()
    station.until_phase(WorkerPhase.READY)
    assert station.worker != worker


@pytest.mark.parametrize("lives_on_s", [0, 600])
def test_what_a_worker_says_behind_its_last_word_is_nothing(tmp_path, lives_on_s):
    """Both messages are there when the first of them is read, and so is the word of its end if it has ended."""
    said = tmp_path / "said"
    argv = [sys.executable, "-c", GIVES_UP, "{fd}", str(said), str(lives_on_s)]
    supervisor = Supervisor(argv=argv, failures_allowed=3)
    supervisor.poll(0)
    wait_for(said.exists, "it has said everything")
    children = Path(f"/proc/{supervisor._spawner.pid}/task/{supervisor._spawner.pid}/children")
    wait_for(lambda: lives_on_s or not children.read_text(), "it has ended")
    assert supervisor.poll(1) == []
    assert (supervisor.status.phase, supervisor.status.detail) == (WorkerPhase.UNAVAILABLE, "no such model")
    supervisor.close()


def test_the_log_of_a_worker_that_chatters_stays_short(tmp_path):
    """While it runs; what it says next is at the beginning again."""
    log, aside = tmp_path / WORKER_LOG, tmp_path / f"{WORKER_LOG}.1"
    with open_worker_log(tmp_path) as opened:
        supervisor = Supervisor(argv=[sys.executable, "-c", CHATTERS], failures_allowed=3, log=opened)
        supervisor.poll(0)
        wait_for(lambda: log.read_bytes() == b"the end", "it is short again", stands=log.stat)
        supervisor.close()
    assert aside.read_bytes() == b"x" * LOG_BYTES


def test_garbage_from_the_worker_is_dropped(station):
    write_behaviour(station.config, faults={"*": "garbage"})
    station.until_phase(WorkerPhase.READY)
    station.ask(1)
    station.until(lambda: station.answers)
    assert [answer.request_id for answer in station.answers] == [1]


def test_a_worker_that_does_not_read_costs_the_guard_no_time(station):
    station.until_phase(WorkerPhase.READY)
    os.kill(station.worker, signal.SIGSTOP)
    for number in range(2_000):  # far more than the socket holds: the newest are lost, and nothing waits
        station.supervisor.cancel(number)
    assert station.supervisor.poll(station.clock.now_ns()) == []


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
