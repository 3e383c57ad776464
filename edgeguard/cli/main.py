"""``edgeguard``: the entry point, and what Ctrl-C does at any time.

The commands take a while to import, so that comes first, and this file imports nothing else before it.
"""

from __future__ import annotations

import sys

from edgeguard import interrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130  # 128 + SIGINT, as shells report it


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Without ``argv`` it is the process's own, and the process ends with it."""
    alone = argv is None
    if alone:
        interrupt.ends_at_once()
    from edgeguard.cli.commands import run_command

    try:
        if alone:
            interrupt.is_raised()
        code = run_command(argv)
        if alone:
            interrupt.ends_at_once()
    except KeyboardInterrupt:
        if alone:
            interrupt.ends_at_once()
        print("edgeguard: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


if __name__ == "__main__":
    sys.exit(main())
