"""What every guard owns beside its wire, in either way to embed: the state directory, the worker, the profile.

Made once at the start; everything that can be wrong with a file is raised here. Nothing of it blocks afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO

from edgeguard.clock import wall_time_iso
from edgeguard.errors import ConfigError, ProfileError
from edgeguard.recorder.metrics_output import check_metrics
from edgeguard.recorder.record import FlightHeader
from edgeguard.recorder.recorder import FlightRecorder
from edgeguard.recorder.rotation import FLIGHT_LOG
from edgeguard.runtime.assembly import Assembly, assemble
from edgeguard.runtime.board_watch import BoardWatch
from edgeguard.runtime.latch import Latch, default_state_directory
from edgeguard.runtime.lock import lock_state_directory
from edgeguard.runtime.profile_check import ProfileCheck
from edgeguard.runtime.supervisor import Supervisor

WORKER_LOG = "worker.log"


class Parts:
    """The configuration, put together with the real parts that it names. The worker is not yet started."""

    def __init__(
        self,
        *,
        config: Path | str,
        profile: Path | str,
        worker: Sequence[str],
        state_directory: Path | str | None = None,
    ) -> None:
        """``worker`` is the worker's command line, with ``{fd}`` for its channel."""
        self.assembly: Assembly = assemble(config)
        self.config = self.assembly.config
        check_metrics(self.config.metrics)
        file, profile = self.config.file.absolute(), Path(profile).absolute()
        if not profile.is_file():
            raise ProfileError(f"{profile}: no such profile; make it with: edgeguard calibrate {file} --out {profile}")
        self.profile = ProfileCheck(profile, period_ns=self.config.timing.period_ns)
        directory = Path(state_directory or self.config.state_directory or default_state_directory(file))
        self._directory = directory
        self.recorder: FlightRecorder | None = None
        self.board_watch: BoardWatch | None = None
        self._lock = lock_state_directory(directory)
        self._log = open_worker_log(directory)
        self.latch = Latch(directory)
        self.supervisor = Supervisor(
            argv=worker,
            failures_allowed=self.config.guarding.worker_failures,
            promise=self.profile.promise,
            log=self._log,
        )

    def start_recorder(self, *, reserve_ns: int, wire_ns: int) -> FlightRecorder:
        """The black box of this start, in the state directory."""
        header = FlightHeader.from_config(self.config, reserve_ns=reserve_ns, wire_ns=wire_ns, created=wall_time_iso())
        self.recorder = FlightRecorder(self._directory / FLIGHT_LOG, header=header)
        return self.recorder

    def start_board_watch(self, *, now_ns: int) -> BoardWatch:
        """Whoever looks how hot the board is, from now on."""
        self.board_watch = BoardWatch(now_ns=now_ns, soaked_c=self.profile.soaked_c)
        return self.board_watch

    def close(self) -> None:
        if self.board_watch is not None:
            self.board_watch.close()
        if self.recorder is not None:
            self.recorder.close()
        self.supervisor.close()
        self.latch.close()
        self._log.close()
        self._lock.close()


def open_worker_log(directory: Path) -> IO[bytes]:
    """What the worker says of itself, appended; its spawner keeps it short. ``ConfigError`` when it cannot be."""
    file = directory / WORKER_LOG
    try:
        return file.open("a+b")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror}): make it this user's, or remove it") from error
