"""A calibration profile as ``check`` and ``run`` take it: of this board, and of this configuration.

Raises ``ProfileError`` with the exact difference. What only a worker can say of itself (the model's files, the runtime)
the guard compares when there is one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from edgeguard.cli.wrapped import wrapped
from edgeguard.config import Config
from edgeguard.runtime.profile_check import ProfileCheck


def require_usable(file: Path, config: Config, *, own_worker: bool = False) -> None:
    """What there is to know before relying on it goes to stderr. ``own_worker``: the user's own, which need not be what
    the configuration says.
    """
    from edgeguard.engine.identity import configured_identity
    from edgeguard.engine.session import allowed_threads

    check = ProfileCheck(file, period_ns=config.timing.period_ns)
    check.require_board()
    if not own_worker:
        best = config.by_model[0]  # whose identity is the ladder's
        check.require_configuration(configured_identity(best, threads=allowed_threads(best.model.threads)))
    if check.warning:
        print(wrapped(f"edgeguard: warning: {check.warning}", stream=sys.stderr), file=sys.stderr)
