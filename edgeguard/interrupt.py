"""What Ctrl-C does to this process: end it at once, come up as ``KeyboardInterrupt``, or wait for the next program.

Python raises ``KeyboardInterrupt`` wherever it is. In the middle of an import that is a traceback, or the
``ImportError`` of an extension that did not expect it; from where nothing can be raised (a destructor, the callback of
a weak reference) it is printed and forgotten. So it ends a process at once as long as there is nothing to clear up: by
the signal itself, which a shell reports as 130. While there is, it is raised; but not in an import, which is over in a
moment, and what was swallowed is raised again.

For entry points: all of it is the whole process's, and only its main thread may ask for it.
"""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

_AGAIN_S = 0.01


def ends_at_once() -> None:
    """From now on it kills. One that was held back comes now."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def is_raised() -> None:
    """From now on it is a ``KeyboardInterrupt`` in the caller, or in whatever that calls."""
    caller = sys._getframe(1)

    def interrupt(_number: int, frame: FrameType | None) -> None:
        while frame is not None and frame is not caller:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
                return
            frame = frame.f_back
        raise KeyboardInterrupt

    sys.unraisablehook = _unraised
    signal.signal(signal.SIGALRM, interrupt)
    signal.signal(signal.SIGINT, interrupt)


def is_held_back() -> None:
    """From now on it waits, also across ``exec``, for an ``ends_at_once``."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if any(signal.setitimer(signal.ITIMER_REAL, 0)):  # it was to be raised again: ``exec`` would keep the alarm alone
        signal.raise_signal(signal.SIGINT)


def _unraised(what: UnraisableHookArgs) -> None:
    if what.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(what)
