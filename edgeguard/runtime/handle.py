"""The caller's handle to a guard in a process of its own (wire mode).

The caller's interpreter, garbage collector or death delays no frame: the handle only sends observations and reads
records. Times are monotonic nanoseconds inside; an observation comes with ``age_ms`` or with the
``captured_ns`` of this machine's monotonic clock.

    with Guard.start("robot.toml", profile="robot.profile.json") as guard:
        for _ in guard.periods():
            record = guard.decide({"said": "go left", "front_m": 2.1})
            print(record.decision.source, record.decision.set_point)
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from edgeguard.channel import Channel, Message
from edgeguard.clock import NS_PER_S, SystemClock, ms_from_ns, ns_from_ms
from edgeguard.config import Config, load_config
from edgeguard.errors import GuardGoneError, WorkerError
from edgeguard.messages import observation_message, read_failure
from edgeguard.plain import from_plain, to_plain
from edgeguard.runtime.departure import stop_limit_ns
from edgeguard.runtime.process import Options
from edgeguard.runtime.stamp import observe
from edgeguard.runtime.status import PATIENCE_S, Status
from edgeguard.runtime.worker_command import find_model_folders, worker_argv
from edgeguard.types import CycleRecord, Event, Mode, OperatorWord, Value

START_LIMIT_S = 20.0

LISTEN_S = 0.05

KEPT_RECORDS = 4096

T = TypeVar("T")


class Guard:
    """A running guard. Made by ``Guard.start``; ends with ``close`` or with the ``with`` block.

    For one thread of one process at a time: two that listen take each other's records. A forked child must not leave
    the block, which would end the guard; let it leave by ``os._exit``.
    """

    def __init__(self, *, process: subprocess.Popen[bytes], channel: Channel, config: Config) -> None:
        self._process = process
        self._channel = channel
        self._clock = SystemClock()
        self._records: deque[CycleRecord] = deque(maxlen=KEPT_RECORDS)
        self._events: deque[Event] = deque(maxlen=KEPT_RECORDS)
        self._statuses: deque[Status] = deque(maxlen=1)
        self.config = config

    @classmethod
    def start(
        cls,
        config: Path | str,
        *,
        profile: Path | str,
        port: str | None = None,
        state_directory: Path | str | None = None,
        worker: Sequence[str] = (),
    ) -> Guard:
        """Start the guard's process and return once it ticks; raises whatever kept it from starting.

        ``port`` and ``state_directory`` override the configuration. ``worker`` is another worker's command line, with
        ``{fd}`` for its channel; by default it is edgeguard's own on the configured model.
        """
        loaded = load_config(config)
        options = Options(
            config=str(loaded.file.absolute()),
            profile=str(Path(profile).absolute()),
            state_directory=None if state_directory is None else str(Path(state_directory).absolute()),
            port=port,
            worker=tuple(worker or worker_argv(loaded.file, Path(profile), models=find_model_folders(loaded))),
        )
        channel, theirs = Channel.pair()
        argv = [sys.executable, "-m", "edgeguard.runtime.process", str(theirs.fileno()), json.dumps(to_plain(options))]
        process = subprocess.Popen(
            argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )  # Ctrl-C is ours: it ends with its channel
        theirs.close()
        guard = cls(process=process, channel=channel, config=loaded)
        try:
            if guard._await_status(START_LIMIT_S) is None:
                raise GuardGoneError(f"the guard's process ({guard.pid}) did not start within {START_LIMIT_S:g} s")
        except BaseException:  # also Ctrl-C while it starts: no guard is left behind that nobody holds
            guard.close()
            raise
        return guard

    def submit(
        self,
        fields: Mapping[str, Value],
        *,
        age_ms: float | None = None,
        captured_ns: int | None = None,
        field_ages_ms: Mapping[str, float] | None = None,
    ) -> int:
        """Hand an observation over and return its ``captured_ns``; without a stamp it was captured just now.

        ``field_ages_ms`` names the fields that were older than that, and by how much. ``ObservationError``: this is no
        observation, or another clock's; a value that is missing, not finite or out of range is a cause in the record.
        """
        observation = observe(
            fields, now_ns=self._clock.now_ns(), age_ms=age_ms, captured_ns=captured_ns, field_ages_ms=field_ages_ms
        )
        self._channel.send({"type": "observation", **observation_message(observation)})
        if self._channel.closed:
            raise self._gone()
        return observation.captured_ns

    def poll(self) -> list[CycleRecord]:
        """The records of the cycles that have ended since the last call, oldest first; of many the newest 4,096."""
        return self._hand_out(self._records)

    def events(self) -> list[Event]:
        """The transitions since the last call, oldest first."""
        return self._hand_out(self._events)

    def decide(
        self,
        fields: Mapping[str, Value],
        *,
        age_ms: float | None = None,
        captured_ns: int | None = None,
        field_ages_ms: Mapping[str, float] | None = None,
    ) -> CycleRecord:
        """Hand an observation over and wait for its decision: there is one by the deadline.

        A decision is released once per period, so call it in a loop over ``periods``: called sooner, the observation
        waits for its period to open while its deadline runs, and a loop that never rests gets no model at all.
        Records of other cycles stay for ``poll``.
        """
        stamp_ns = self.submit(fields, age_ms=age_ms, captured_ns=captured_ns, field_ages_ms=field_ages_ms)
        timing = self.config.timing
        limit_ns = timing.period_ns + timing.deadline_ns + round(PATIENCE_S * NS_PER_S)
        record = self._await(lambda: self._record_of(stamp_ns), limit_ns)
        if record is None:
            waited_ms = ms_from_ns(limit_ns)
            raise GuardGoneError(
                f"no decision within {waited_ms:g} ms: the guard's process ({self.pid}) does not answer"
            )
        self._records.remove(record)
        return record

    def periods(self) -> Iterator[int]:
        """The robot's rhythm: yields 0, 1, 2, … once per period, each time at the moment to observe and decide.

        A period that the caller has overslept is skipped, never caught up with.
        """
        period_ns = self.config.timing.period_ns
        start_ns, number = self._clock.now_ns(), 0
        while True:
            yield number
            number = max(number + 1, -(-(self._clock.now_ns() - start_ns) // period_ns))
            self._clock.sleep_until_ns(start_ns + number * period_ns)

    def stop(self) -> None:
        """The operator's stop: takes effect within one tick and latches."""
        self._say(OperatorWord.STOP)

    def rearm(self) -> None:
        """The operator's re-arm: refused while a cause holds; moves nothing by itself."""
        self._say(OperatorWord.REARM)

    def status(self, *, timeout_s: float = PATIENCE_S) -> Status:
        """How the guard stands now."""
        self._channel.send({"type": "status"})
        status = self._await_status(timeout_s)
        if status is None:
            raise GuardGoneError(f"no status within {timeout_s:g} s: the guard's process ({self.pid}) does not answer")
        return status

    def wait_armed(self, *, timeout_s: float, observe_with: Mapping[str, Value] | None = None) -> Status:
        """Wait until the model's commands go out; the guard needs observations for that, at its period.

        ``observe_with`` is submitted once per period meanwhile, for a caller that has nothing better to do. Raises
        ``WorkerError`` with the guard's own reason when it is not armed in time.
        """
        give_up_ns = self._clock.now_ns() + ns_from_ms(timeout_s * 1000)
        while True:
            status = self.status()
            if status.mode is Mode.ARMED:
                return status
            if observe_with is not None:
                self.submit(observe_with)
            if self._clock.now_ns() > give_up_ns:
                raise WorkerError(f"not armed after {timeout_s:g} s: {status.detail} (worker: {status.worker})")
            self._clock.sleep_until_ns(self._clock.now_ns() + self.config.timing.period_ns)

    @property
    def pid(self) -> int:
        """The guard's process."""
        return self._process.pid

    def close(self) -> None:
        """End the guard: it slows the robot down, and ends at standstill. Returns when it has ended."""
        timing, link = self.config.timing, self.config.link
        stop_ns = stop_limit_ns(self.config.axes, echo_timeout_ns=link.echo_timeout_ns, tick_ns=timing.tick_ns)
        self._channel.send({"type": "end"})
        self._channel.close()
        try:
            self._process.wait(timeout=PATIENCE_S + stop_ns / NS_PER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say(self, word: OperatorWord) -> None:
        self._channel.send({"type": "operator", "word": word.value})
        if self._channel.closed:
            raise self._gone()

    def _await_status(self, timeout_s: float) -> Status | None:
        self._statuses.clear()
        return self._await(lambda: next(iter(self._statuses), None), ns_from_ms(timeout_s * 1000))

    def _record_of(self, stamp_ns: int) -> CycleRecord | None:
        of_stamp = (one for one in self._records if one.observation and one.observation.captured_ns == stamp_ns)
        return next(of_stamp, None)

    def _await(self, look: Callable[[], T | None], limit_ns: int) -> T | None:
        """What ``look`` finds, within ``limit_ns`` or in what has arrived by then: we may have been set aside."""
        give_up_ns, late = self._clock.now_ns() + limit_ns, False
        while not late:
            late = self._clock.now_ns() >= give_up_ns
            self._listen(timeout_s=0 if late else LISTEN_S)
            if (found := look()) is not None:
                return found
            if self._channel.closed:
                raise self._gone()
        return None

    def _hand_out(self, kept: deque[T]) -> list[T]:
        """What it has said; only behind that, that it is gone."""
        self._listen(timeout_s=0)
        if not kept and self._channel.closed:
            raise self._gone()
        handed = list(kept)
        kept.clear()
        return handed

    def _listen(self, *, timeout_s: float) -> None:
        if timeout_s and not self._channel.closed:
            self._channel.wait(timeout_s)
        while messages := self._channel.receive():
            for message in messages:
                self._take(message)

    def _take(self, message: Message) -> None:
        kind = message["type"]
        if kind == "record":
            self._records.append(from_plain(CycleRecord, message["record"]))
        elif kind == "event":
            self._events.append(from_plain(Event, message["event"]))
        elif kind in ("status", "started"):
            self._statuses.append(from_plain(Status, message["status"]))
        elif kind == "failed":
            raise read_failure(message)

    def _gone(self) -> GuardGoneError:
        status = self._process.poll()
        ended = "does not answer" if status is None else f"ended with status {status}"
        return GuardGoneError(f"the guard's process ({self.pid}) {ended}; the motor controller stops by time to live")
