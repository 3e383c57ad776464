"""Keeps one worker alive without ever waiting for it: starts, listens, replaces, backs off, gives up.

The worker is started by a small spawner process, so that the guard never forks while it has real-time priority, and
the old worker is seen gone before a new one starts. Every call returns at once; time is handed in (monotonic
nanoseconds). Answers of other epochs are passed on as they come: the core discards them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from edgeguard.channel import PEER_LIMIT_BYTES, Channel, Message
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.guard.interface import Promise, WorkerPhase, WorkerStatus
from edgeguard.messages import DETAIL_CHARS, read_answer, request_message
from edgeguard.types import Answer, Finish, Request

SPAWNER_MODULE = "edgeguard.engine.spawner"

BACK_OFF_FIRST_NS = 200 * NS_PER_MS
BACK_OFF_LIMIT_NS = 10_000 * NS_PER_MS

LEAVES_WITHIN_NS = 1_000 * NS_PER_MS
"""A worker that has closed its channel ends by itself; one that does not is killed."""

GONE_WITHIN_NS = 30_000 * NS_PER_MS
"""By then a worker that was to end has, or the spawner does not do what it is told."""

SPAWNER_ENDS_WITHIN_S = 2.0
"""When we end, its channel is closed: it kills its worker and ends."""


class Supervisor:
    """One worker, its spawner and the channels to both. ``argv`` starts the worker, with ``{fd}`` for its channel.

    ``promise`` is what the calibration profile says of it.
    """

    def __init__(
        self,
        *,
        argv: Sequence[str],
        failures_allowed: int,
        promise: Promise | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        self._argv = list(argv)
        self._promise = promise
        self._failures_allowed = failures_allowed
        self._log = log
        self._spawner: subprocess.Popen[bytes] | None = None
        self._spawner_channel: Channel | None = None
        self._worker_channel: Channel | None = None
        self._phase = WorkerPhase.GONE
        self._detail = "not started"
        self._reason: str | None = None  # why it is about to end, if we know
        self._failures = 0
        self._start_at_ns: int | None = 0
        self._kill_at_ns: int | None = None  # it has hung up, and is to have ended by then
        self._ending_since_ns: int | None = None  # nobody has said yet that it has gone
        self.ready: Mapping[str, Any] = {}
        self.pid: int | None = None
        self.starts = 0

    @property
    def status(self) -> WorkerStatus:
        return WorkerStatus(phase=self._phase, promise=self._promise, detail=self._detail)

    @property
    def filenos(self) -> list[int]:
        """What to wait for: a message on any of these is a reason to call ``poll``."""
        channels = (self._spawner_channel, self._worker_channel)
        return [channel.fileno() for channel in channels if channel is not None and not channel.closed]

    def poll(self, now_ns: int) -> list[Answer]:
        """Take what has arrived, do what is due, and return the answers."""
        heard = [] if self._spawner_channel is None else self._spawner_channel.receive()
        answers = self._listen_to_worker(now_ns)  # before its end is noted: all that it has said is there by then
        self._heed_spawner(heard, now_ns)
        if self._kill_at_ns is not None and now_ns >= self._kill_at_ns:
            self._kill()
        if self._start_at_ns is not None and now_ns >= self._start_at_ns and self._phase is WorkerPhase.GONE:
            self._start()
        self._watch_end(now_ns)
        return answers

    def ask(self, request: Request) -> bool:
        """Hand a request over; ``False`` when the worker cannot take it now (the deadline timer covers that)."""
        channel = self._worker_channel
        return channel is not None and channel.send(request_message(request))

    def cancel(self, request_id: int) -> None:
        if self._worker_channel is not None:
            self._worker_channel.send({"type": "cancel", "request_id": request_id})

    def restart(self, reason: str) -> None:
        """Kill the worker; a new one starts when the old one is seen gone."""
        self._phase, self._detail, self._reason = WorkerPhase.GONE, reason, reason
        self._start_at_ns = None  # the spawner's word that it has gone sets the time
        self._close_worker()
        self._kill()

    def retry(self) -> None:
        """The operator's word: forget the failures and try again."""
        if self._phase is WorkerPhase.UNAVAILABLE:
            self._failures = 0
            self._phase, self._detail, self._start_at_ns = WorkerPhase.GONE, "tried again by the operator", 0
            self._kill()  # one that was given up may live on

    def close(self) -> None:
        """Let both processes end; the spawner takes the worker with it."""
        self._close_worker()
        if self._spawner_channel is not None:
            self._spawner_channel.close()
            self._spawner_channel = None
        if self._spawner is not None:
            try:
                self._spawner.wait(timeout=SPAWNER_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                self._spawner.kill()
                self._spawner.wait()
            self._spawner = None

    def _start(self) -> None:
        spawner = self._spawner_channel or self._start_spawner()
        if spawner is None:
            return
        self._worker_channel, theirs = Channel.pair(limit_bytes=PEER_LIMIT_BYTES)
        sent = spawner.send({"type": "spawn", "argv": self._argv}, fds=[theirs.fileno()])
        theirs.close()
        self.ready, self.pid, self._start_at_ns, self._kill_at_ns, self._reason = {}, None, None, None, None
        self.starts += 1
        if sent:
            self._phase, self._detail = WorkerPhase.WARMING, "starting"
        else:
            self._give_up("the spawner does not take messages")

    def _start_spawner(self) -> Channel | None:
        """A second one starts at the operator's word; ``None`` while the one before has not yet gone."""
        if self._spawner is not None and self._spawner.poll() is None:
            self._spawner.kill()
            return None
        channel, theirs = Channel.pair()
        argv = [sys.executable, "-m", SPAWNER_MODULE, str(theirs.fileno())]
        argv += [] if self._log is None else [str(self._log.name)]
        self._spawner = subprocess.Popen(
            argv,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is ours: it ends with its channel
        )
        theirs.close()
        self._spawner_channel = channel
        return channel

    def _heed_spawner(self, heard: Sequence[Message], now_ns: int) -> None:
        """Also of a worker that was given up: a message that nobody takes would wake the guard for ever."""
        for message in heard:
            if message["type"] == "spawned":
                self.pid = message.get("pid")
            elif message["type"] == "exited" and message.get("pid") == self.pid:
                self._note_exit(now_ns, message)
            elif message["type"] == "refused":
                self._reason = str(message.get("error"))
                self._note_exit(now_ns, message)
        if self._spawner_channel is not None and self._spawner_channel.closed:
            self._lose_spawner("the spawner process is gone")

    def _watch_end(self, now_ns: int) -> None:
        """A spawner that is stopped kills nobody and starts nobody: it goes, and its worker with it."""
        if self._phase is not WorkerPhase.GONE or self._start_at_ns is not None:
            self._ending_since_ns = None
        elif self._ending_since_ns is None:
            self._ending_since_ns = now_ns
        elif now_ns - self._ending_since_ns >= GONE_WITHIN_NS and self._spawner is not None:
            self._spawner.kill()
            self._lose_spawner(f"{self._detail}; it has not gone within {GONE_WITHIN_NS // NS_PER_S} s")

    def _lose_spawner(self, reason: str) -> None:
        """It takes the worker with it."""
        if self._spawner_channel is not None:
            self._spawner_channel.close()
        self._spawner_channel = self.pid = None
        if self._phase is not WorkerPhase.UNAVAILABLE:
            self._give_up(reason)

    def _note_exit(self, now_ns: int, message: Message) -> None:
        self._close_worker()
        self.pid = None
        if self._phase is WorkerPhase.UNAVAILABLE:
            return
        self._failures += 1
        self._detail = self._reason or f"exited with status {message.get('status')}"
        if self._failures >= self._failures_allowed:
            self._give_up(f"{self._failures} failures in a row, the last: {self._detail}")
            return
        back_off_ns = min(BACK_OFF_LIMIT_NS, BACK_OFF_FIRST_NS << (self._failures - 1))
        self._phase, self._start_at_ns = WorkerPhase.GONE, now_ns + back_off_ns

    def _listen_to_worker(self, now_ns: int) -> list[Answer]:
        answers: list[Answer] = []
        if self._worker_channel is None:
            return answers
        for message in self._worker_channel.receive():
            answer = self._read(message)
            if answer is not None:
                answers.append(answer)
            if self._phase is WorkerPhase.UNAVAILABLE:  # that was its last word
                return answers
        if self._worker_channel.closed:
            self._close_worker()
            self._phase, self._detail = WorkerPhase.GONE, "the worker closed its channel"
            self._kill_at_ns = now_ns + LEAVES_WITHIN_NS
        return answers

    def _read(self, message: Message) -> Answer | None:
        kind = message["type"]
        if kind == "answer":
            answer = read_answer(message)
            if answer is not None and answer.finish is Finish.COMPLETE:
                self._failures = 0
            return answer
        if kind == "ready":
            self.ready = message
            self._phase, self._detail = WorkerPhase.READY, "ready"
        elif kind == "warming":
            progress = f"{message.get('phase', 'warming')} {message.get('done', '')}/{message.get('total', '')}"
            self._detail = progress[:DETAIL_CHARS]
        elif kind == "failed":
            self._detail = self._reason = str(message.get("error", "failed"))[:DETAIL_CHARS]
            if message.get("exit_code", 1) != 1:  # a mistake in the set-up: trying again would not mend it
                self._give_up(self._detail)
        return None

    def _kill(self) -> None:
        self._kill_at_ns = None
        if self._spawner_channel is not None:
            self._spawner_channel.send({"type": "kill"})

    def _give_up(self, reason: str) -> None:
        self._close_worker()
        self._phase, self._detail, self._start_at_ns = WorkerPhase.UNAVAILABLE, reason, None

    def _close_worker(self) -> None:
        if self._worker_channel is not None:
            self._worker_channel.close()
            self._worker_channel = None
