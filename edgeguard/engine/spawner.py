"""A small process that starts workers and says when they are really gone.

``python -m edgeguard.engine.spawner FD [LOG]``. The guard must not fork (it may run at real-time priority) nor wait, so
this process does both for it. Messages of ``edgeguard.channel`` over ``FD``:

==============  ===========================  ==========================================================================
direction       message                      meaning
==============  ===========================  ==========================================================================
to spawner      ``spawn`` argv               start this worker; ``{fd}`` in argv becomes the descriptor sent along
to spawner      ``kill``                     SIGKILL to the worker and everything it has started
from spawner    ``spawned`` pid              it runs
from spawner    ``refused`` error            it was not started: another one has not yet gone
from spawner    ``exited`` pid, status       it is gone and its memory free; a status below 0 is minus the signal
==============  ===========================  ==========================================================================

A command that cannot be started at all has ``exited`` without a pid, with the shell's status 127. One worker at a time.
The spawner ends when its channel closes or its parent dies, and takes the worker with it. ``LOG`` is the file that its
standard error, and so the worker's, is appended to: every second it sees to it that this does not grow for ever.
Standard library only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from edgeguard.channel import Channel, Message
from edgeguard.engine.process import HUGE_PAGES, die_with_parent, settle_as_worker

NOT_STARTED = 127

LOG_BYTES = 1 << 20
LOOK_EVERY_MS = 1_000


class Spawner:
    """At most one worker and the channel to whoever wants it."""

    def __init__(self, *, channel: Channel, log: Path | None) -> None:
        self._channel = channel
        self._log = log
        self._worker: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._poll = select.poll()
        self._poll.register(channel.fileno(), select.POLLIN)

    def run(self) -> None:
        """Serve until the channel closes."""
        try:
            while not self._channel.closed:
                ready = {fd for fd, _ in self._poll.poll(None if self._log is None else LOOK_EVERY_MS)}
                if self._log is not None:
                    put_aside(sys.stderr.fileno(), self._log)
                if self._pidfd in ready:  # before new orders, so that kill and spawn sent together work
                    self._bury()
                for message, fds in self._channel.receive_with_fds():
                    self._obey(message, fds)
        finally:
            self._kill()

    def _obey(self, message: Message, fds: list[int]) -> None:
        try:
            if message["type"] == "spawn":
                self._spawn(list(map(str, message["argv"])), fds)
            elif message["type"] == "kill":
                self._kill()
        finally:
            for fd in fds:
                os.close(fd)

    def _spawn(self, argv: list[str], fds: list[int]) -> None:
        if self._worker is not None:
            self._report({"type": "refused", "error": f"the worker {self._worker.pid} has not yet gone"})
            return
        try:
            self._worker = subprocess.Popen(
                [str(fds[0]) if fds and part == "{fd}" else part for part in argv],
                pass_fds=fds,
                env={**HUGE_PAGES, **os.environ},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=functools.partial(settle_as_worker, parent_pid=os.getpid()),  # noqa: PLW1509 - no other threads here
            )
        except (OSError, subprocess.SubprocessError) as error:
            self._report({"type": "exited", "pid": None, "status": NOT_STARTED, "error": f"{argv[0]}: {error}"})
            return
        self._pidfd = os.pidfd_open(self._worker.pid)
        self._poll.register(self._pidfd, select.POLLIN)
        self._report({"type": "spawned", "pid": self._worker.pid})

    def _kill(self) -> None:
        """To the whole group. The worker is not yet waited for, so its process id cannot be another's by now."""
        if self._worker is not None:
            os.killpg(self._worker.pid, signal.SIGKILL)

    def _bury(self) -> None:
        assert self._worker is not None
        self._kill()  # what it has started must not outlive it
        status = self._worker.wait()
        self._poll.unregister(self._pidfd)
        os.close(self._pidfd)
        pid, self._worker, self._pidfd = self._worker.pid, None, -1
        self._report({"type": "exited", "pid": pid, "status": status})

    def _report(self, message: Message) -> None:
        """Say it, waiting for room if the reader is slow: nothing else is worth doing before it has been said."""
        while not self._channel.send(message) and not self._channel.closed:
            select.select([], [self._channel], [])


def put_aside(fd: int, log: Path) -> None:
    """Whoever writes to ``fd`` appends: emptied, it goes on from its beginning. Its end is kept beside it."""
    size = os.fstat(fd).st_size
    if size > LOG_BYTES:
        with contextlib.suppress(OSError):  # a full disk: then all the more
            try:
                log.with_name(f"{log.name}.1").write_bytes(os.pread(fd, LOG_BYTES, size - LOG_BYTES))
            finally:
                os.ftruncate(fd, 0)


def main() -> None:
    parent_pid = os.getppid()
    die_with_parent(parent_pid=parent_pid)
    log = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    Spawner(channel=Channel.from_fd(int(sys.argv[1])), log=log).run()


if __name__ == "__main__":
    main()
