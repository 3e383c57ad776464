"""The spawner, as a real process with real workers: started, killed, stopped, orphaned."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, wait_for

from edgeguard.channel import Channel, Message
from edgeguard.engine.process import OOM_SCORE_ADJ

SLEEPER = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
REPORTER = """
import json, os, socket, sys
peer = socket.socket(fileno=int(sys.argv[1]))
with open("/proc/self/oom_score_adj") as file:
    oom = int(file.read())
facts = {"type": "facts", "session": os.getsid(0), "pid": os.getpid(), "oom": oom, "policy": os.sched_getscheduler(0)}
facts["tunables"] = os.environ["GLIBC_TUNABLES"]
peer.send(json.dumps(facts).encode())
"""
FORKER = """
import os, socket, sys, time
peer = socket.socket(fileno=int(sys.argv[1]))
child = os.fork()
if child:
    peer.send(b'{"type": "child", "pid": %d}' % child)
time.sleep(60)
"""


class Spawner:
    """The real process, and a patient reader of what it says."""

    def __init__(self) -> None:
        self.channel, theirs = Channel.pair()
        argv = [sys.executable, "-m", "edgeguard.engine.spawner", str(theirs.fileno())]
        self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()])
        self.workers: list[Channel] = []
        self.heard: list[Message] = []
        theirs.close()

    def spawn(self, argv: list[str]) -> Channel:
        ours, theirs = Channel.pair()
        assert self.channel.send({"type": "spawn", "argv": argv}, fds=[theirs.fileno()])
        theirs.close()
        self.workers.append(ours)
        return ours

    def start(self, argv: list[str]) -> int:
        """Spawn and return the process id."""
        self.spawn(argv)
        return int(self.next("spawned")["pid"])

    def next(self, kind: str) -> Message:
        """A worker that ends at once is two messages at once: what comes after the wanted one is kept for later."""
        if not self.heard:
            self.heard = receive_all(self.channel, kind)
        message = self.heard.pop(0)
        assert message["type"] == kind, message
        return message

    def close(self) -> int:
        for channel in (self.channel, *self.workers):
            channel.close()
        return self.process.wait(timeout=PATIENCE_S)


def receive_all(channel: Channel, kind: str) -> list[Message]:
    ready, _, _ = select.select([channel], [], [], PATIENCE_S)
    assert ready, f"no {kind!r} came"
    return channel.receive()


def receive(channel: Channel, kind: str) -> Message:
    (message,) = receive_all(channel, kind)
    assert message["type"] == kind, message
    return message


def wait_gone(pid: int) -> None:
    """Return when the process no longer runs; a zombie does not."""

    def gone() -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    wait_for(gone, f"process {pid} ends")


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    running = Spawner()
    yield running
    running.close()


def test_it_starts_a_worker_with_its_descriptor_and_reports_its_end(spawner: Spawner) -> None:
    channel = spawner.spawn([sys.executable, "-c", REPORTER, "{fd}"])
    pid = spawner.next("spawned")["pid"]
    facts = receive(channel, "facts")
    assert facts["pid"] == facts["session"] == pid, "a session of its own"
    assert facts["oom"] == OOM_SCORE_ADJ
    assert facts["policy"] == os.SCHED_OTHER
    assert facts["tunables"] == os.environ.get("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    assert spawner.next("exited") == {"type": "exited", "pid": pid, "status": 0}


def test_a_killed_worker_is_reported_with_its_signal(spawner: Spawner) -> None:
    pid = spawner.start(SLEEPER)
    os.kill(pid, signal.SIGKILL)
    assert spawner.next("exited") == {"type": "exited", "pid": pid, "status": -signal.SIGKILL}


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_kill_ends_even_a_worker_that_does_nothing_any_more(spawner: Spawner, stopped: bool) -> None:
    pid = spawner.start(SLEEPER)
    if stopped:
        os.kill(pid, signal.SIGSTOP)
    spawner.channel.send({"type": "kill"})
    assert spawner.next("exited") == {"type": "exited", "pid": pid, "status": -signal.SIGKILL}


def test_a_second_worker_is_refused_until_the_first_is_gone(spawner: Spawner) -> None:
    first = spawner.start(SLEEPER)
    refused_channel = spawner.spawn(SLEEPER)
    assert str(first) in spawner.next("refused")["error"]
    select.select([refused_channel], [], [], PATIENCE_S)
    assert refused_channel.receive() == []
    assert refused_channel.closed, "the refused worker's end is not kept open"
    spawner.channel.send({"type": "kill"})
    assert spawner.next("exited")["pid"] == first
    assert spawner.start(SLEEPER) != first


def test_what_a_worker_has_started_goes_with_it(spawner: Spawner) -> None:
    channel = spawner.spawn([sys.executable, "-S", "-c", FORKER, "{fd}"])
    pid = spawner.next("spawned")["pid"]
    child = receive(channel, "child")["pid"]
    os.kill(pid, signal.SIGKILL)
    assert spawner.next("exited")["pid"] == pid
    wait_gone(child)


def test_a_command_that_does_not_exist_is_an_exit_too(spawner: Spawner) -> None:
    spawner.spawn(["/nowhere/python", "{fd}"])
    exited = spawner.next("exited")
    assert (exited["pid"], exited["status"]) == (None, 127)
    assert "/nowhere/python" in exited["error"]
    assert spawner.start(SLEEPER) > 0


def test_the_worker_dies_with_the_spawner() -> None:
    spawner = Spawner()
    pid = spawner.start(SLEEPER)
    spawner.process.kill()
    spawner.process.wait(timeout=PATIENCE_S)
    wait_gone(pid)
    spawner.close()


def test_a_closed_channel_ends_the_spawner_and_its_worker() -> None:
    spawner = Spawner()
    pid = spawner.start(SLEEPER)
    assert spawner.close() == 0
    wait_gone(pid)


def test_the_death_of_whoever_started_the_spawner_ends_everything() -> None:
    """Even when another process holds the channel open, so that only the parent-death signal can do it."""
    ours, theirs = Channel.pair()
    script = (
        "import subprocess, sys; print(subprocess.Popen(sys.argv[2:], pass_fds=[int(sys.argv[1])]).pid, flush=True)"
    )
    argv = [sys.executable, "-c", f"{script}; sys.stdin.read()", str(theirs.fileno())]
    argv += [sys.executable, "-m", "edgeguard.engine.spawner", str(theirs.fileno())]
    parent = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdin is not None
    spawner_pid = int(parent.stdout.readline())
    worker_ours, worker_theirs = Channel.pair()
    ours.send({"type": "spawn", "argv": SLEEPER}, fds=[worker_theirs.fileno()])
    worker_pid = receive(ours, "spawned")["pid"]
    parent.kill()
    parent.wait(timeout=PATIENCE_S)
    wait_gone(spawner_pid)
    wait_gone(worker_pid)
    for stream in (parent.stdin, parent.stdout, worker_theirs, theirs):
        stream.close()
    worker_ours.close()
    ours.close()


def test_the_spawner_is_small() -> None:
    code = "import json, sys, edgeguard.engine.spawner; print(json.dumps(sorted(sys.modules)))"
    modules = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    assert not {"numpy", "onnxruntime", "tokenizers"} & set(modules)
