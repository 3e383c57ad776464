"""A worker of one's own, asked one thing at a time, for whoever has time to wait: the bench, a comparison, a test.

Starts the spawner and, through it, the worker, as the guard does, and speaks the same messages; but every call blocks
until there is a reply, and has a limit. (The guard's own supervisor never blocks and starts again; this does neither.)
A worker that dies, falls silent or refuses to start is a ``WorkerError``, or the error that it named itself. Times are
nanoseconds of the ``Clock``, which must be the machine's: the limits are real.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from edgeguard.budget import PassTimes
from edgeguard.channel import Channel, Message
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.errors import ConfigError, EdgeguardError, ModelError, ProfileError, ProviderError, WorkerError
from edgeguard.messages import read_answer, request_message
from edgeguard.model.progress import Progress
from edgeguard.runtime.supervisor import SPAWNER_MODULE
from edgeguard.types import Answer, Request

START_LIMIT_NS = 300 * NS_PER_S
"""For loading, the prefix and the warm-up; a model that is still being built or read from a slow card takes minutes."""

EXIT_LIMIT_NS = 2 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Which passes of a model can be timed, behind the prefix of ``rung``: of those that ask it the one with the most
    room. With ``fixed_sizes`` there are no others than ``pass_sizes``.
    """

    rung: str = ""
    prefix_tokens: int
    capacity_tokens: int
    pass_sizes: tuple[int, ...]
    fixed_sizes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(Passes):
    """What the worker says of itself once it is warm. ``bound_ns`` only if it was given a profile; ``placement`` is
    where the nodes of its graph are, in words; ``others`` are further models that plans ask."""

    identity: Mapping[str, str]
    bound_ns: int | None
    placement: str = ""
    others: tuple[Passes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer and the time at which it was in our hands."""

    answer: Answer
    received_ns: int


class WorkerClient:
    """One spawner, one worker, the channels to both. Made by ``start``; ends with ``close`` or the ``with`` block."""

    def __init__(
        self, *, spawner: subprocess.Popen[bytes], spawner_channel: Channel, channel: Channel, clock: Clock
    ) -> None:
        self._spawner = spawner
        self._spawner_channel = spawner_channel
        self._channel = channel
        self._clock = clock
        self._worker_pid: int | None = None

    @classmethod
    def start(cls, *, argv: Sequence[str], clock: Clock) -> WorkerClient:
        """Start the worker with this command line (``{fd}`` for its channel) and return at once."""
        spawner_channel, spawner_end = Channel.pair()
        channel, worker_end = Channel.pair()
        with spawner_end, worker_end:
            command = [sys.executable, "-m", SPAWNER_MODULE, str(spawner_end.fileno())]
            spawner = subprocess.Popen(
                command, pass_fds=[spawner_end.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )  # Ctrl-C is ours: it ends with its channel
            spawner_channel.send({"type": "spawn", "argv": list(argv)}, fds=[worker_end.fileno()])
        return cls(spawner=spawner, spawner_channel=spawner_channel, channel=channel, clock=clock)

    def wait_ready(self, *, progress: Progress, limit_ns: int = START_LIMIT_NS) -> Ready:
        """Wait until it is loaded and warm; its own error when it cannot become so."""
        until_ns, reached = self._clock.now_ns() + limit_ns, "starting"
        while True:
            message = self._receive(until_ns, what=f"ready (it was at: {reached})")
            if message["type"] == "warming":
                reached = str(message.get("phase"))
                progress(reached, int(message.get("done", 0)), int(message.get("total", 0)))
            elif message["type"] == "failed":
                raise _error_of(message)
            elif message["type"] == "ready":
                return _read_ready(message)

    def sweep(
        self, *, sizes: Sequence[int], repeats: int, limit_ns: int, depths: Sequence[int] = (), rung: str = ""
    ) -> list[PassTimes]:
        """Have passes of these sizes timed, each so many times, behind so many tokens (default: behind the prefix), of
        the model whose ``Passes`` name this rung.
        """
        wanted = {"sizes": list(sizes), "repeats": repeats, "depths": list(depths), "rung": rung}
        self._channel.send({"type": "sweep", **wanted})
        until_ns = self._clock.now_ns() + limit_ns
        while True:
            message = self._receive(until_ns, what="done with its sweep")
            if message["type"] == "swept":
                rows = message["rows"]
                return [PassTimes(k=row["k"], p=row["p"], elapsed_ns=tuple(row["elapsed_ns"])) for row in rows]

    def ask(
        self,
        request: Request,
        *,
        admit: bool,
        limit_ns: int,
        token_by_token: bool = False,
        may_draft: bool = True,
        rung: str = "",
    ) -> Reply:
        """Hand a request over and wait for its answer; answers to other requests are dropped.

        ``token_by_token`` asks for the way that everybody else takes, for comparison; without ``may_draft`` the last
        answer is not the draft of this one. ``rung`` names the plan that is asked, and no other.
        """
        message = request_message(request, admit=admit)
        self._channel.send({**message, "token_by_token": token_by_token, "draft": may_draft, "rung": rung})
        until_ns = self._clock.now_ns() + limit_ns
        while True:
            message = self._receive(until_ns, what=f"done with request {request.request_id}")
            answer = read_answer(message) if message["type"] == "answer" else None
            if answer is not None and answer.request_id == request.request_id:
                return Reply(answer=answer, received_ns=self._clock.now_ns())

    @property
    def worker_pid(self) -> int:
        """Of the worker, once it is ready."""
        for message in self._spawner_channel.receive():
            if message["type"] == "spawned":
                self._worker_pid = int(message["pid"])
        assert self._worker_pid is not None, "asked before it was ready"
        return self._worker_pid

    def pause(self) -> None:
        """Stop the worker where it stands, so that its threads take nothing from another that is being timed."""
        os.kill(self.worker_pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.worker_pid, signal.SIGCONT)

    def resident_bytes(self) -> int:
        """The memory that the worker has now, its share of mapped files included."""
        import psutil

        try:
            return int(psutil.Process(self.worker_pid).memory_info().rss)
        except psutil.NoSuchProcess as error:
            raise WorkerError(f"the worker {self._how_it_ended()}") from error

    def close(self) -> None:
        """End both processes: the spawner takes the worker with it."""
        self._channel.close()
        self._spawner_channel.close()
        try:
            self._spawner.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._spawner.kill()
            self._spawner.wait()

    def __enter__(self) -> WorkerClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, until_ns: int, *, what: str) -> Message:
        """The worker's next message; what it had said before it died still counts."""
        while True:
            left_ns = until_ns - self._clock.now_ns()
            if left_ns <= 0:
                raise WorkerError(f"the worker is not {what} in time; what it printed may say why")
            if self._channel.closed:
                raise WorkerError(f"the worker {self._how_it_ended()} before it was {what}")
            select.select([self._channel], [], [], left_ns / NS_PER_S)
            for message in self._channel.receive(most=1):
                return message

    def _how_it_ended(self) -> str:
        """In the spawner's words, which come a moment after the worker's channel has closed."""
        until_ns = self._clock.now_ns() + EXIT_LIMIT_NS
        while not self._spawner_channel.closed and (left_ns := until_ns - self._clock.now_ns()) > 0:
            select.select([self._spawner_channel], [], [], left_ns / NS_PER_S)
            for message in self._spawner_channel.receive():
                if message["type"] == "exited":
                    return str(message.get("error") or f"ended with status {message.get('status')}")
        return "closed its channel"


def _error_of(message: Mapping[str, Any]) -> EdgeguardError:
    """What kept the worker from starting, as the class with the exit code that it named."""
    kinds = (ConfigError, ModelError, ProviderError, ProfileError)
    kind = next((kind for kind in kinds if kind.exit_code == message.get("exit_code")), WorkerError)
    return kind(str(message.get("error")))


def _read_ready(message: Mapping[str, Any]) -> Ready:
    return Ready(
        **_read_passes(message),
        identity={str(key): str(value) for key, value in message["identity"].items()},
        bound_ns=message["bound_ns"],
        placement=str(message.get("placement", "")),
        others=tuple(Passes(**_read_passes(one)) for one in message.get("others", ())),
    )


def _read_passes(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rung": str(message.get("rung", "")),
        "prefix_tokens": message["prefix_tokens"],
        "capacity_tokens": message["capacity_tokens"],
        "pass_sizes": tuple(sorted(message["pass_sizes"])),
        "fixed_sizes": message.get("fixed_sizes") is True,
    }
