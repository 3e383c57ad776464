"""Opens a port again without waiting for it: the guard asks at each tick, and a thread of ordinary priority waits.

Opening a USB adapter and setting it up takes a dozen messages to it. One that has hung answers none of them, and the
kernel waits seconds for each. A thread that never comes back leaves the link as lost as it is.
"""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable
from typing import Generic, TypeVar

from edgeguard.errors import LinkError

P = TypeVar("P")


class Opening(Generic[P]):
    """Call it until it gives what ``open_port`` returns, or raises the ``LinkError`` that came of it."""

    def __init__(self, open_port: Callable[[], P]) -> None:
        self._open_port = open_port
        self.under_way = False
        self._port: P | None = None
        self._problem: str | None = None

    def __call__(self) -> P | None:
        """``None``: not yet. Behind the outcome the next call begins anew."""
        if not self.under_way:
            self.under_way, self._problem = True, None
            try:
                start_new_thread(self._run, ())
            except RuntimeError:  # none may be made (LimitMEMLOCK, TasksMax)
                self._run()
        port, problem = self._port, self._problem
        if problem is not None:
            self.under_way = False
            raise LinkError(problem)
        if port is not None:
            self.under_way, self._port = False, None
        return port

    def _run(self) -> None:
        problem: str | None = "the port cannot be opened"  # unless all goes well
        try:
            self._port, problem = self._open_port(), None
        except LinkError as error:  # its text only: kept, it would hold a cycle that nobody collects in the guard
            problem = str(error)
        finally:
            self._problem = problem
