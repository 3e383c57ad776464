"""What Ctrl-C does to this process: end it at once, come up as ``KeyboardInterrupt``, or wait for the next program.

Python raises ``KeyboardInterrupt`` wherever it is. While modules are imported nobody can say a word about it; and from
where nothing can be raised (a destructor, the callback of a weak reference, of which every import has some) it is
printed and forgotten. So it ends a process at once as long as there is nothing to clear up: by the signal itself, which
a shell reports as 130. It is raised while there is, and what was swallowed is raised again.

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
    """From now on it is a ``KeyboardInterrupt``."""
    sys.unraisablehook = _unraised
    signal.signal(signal.SIGALRM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)


def is_held_back() -> None:
    """From now on it waits, also across ``exec``, for an ``ends_at_once``."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _unraised(what: UnraisableHookArgs) -> None:
    if what.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        sys.__unraisablehook__(what)
