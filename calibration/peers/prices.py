"""What passes cost here, as the first part of a calibration measures it: a robot's drafts go by these prices.

Takes some twenty seconds. Raises ``BusyError``.
"""

from __future__ import annotations

from pathlib import Path

from edgeguard.bench.calibration.effort import BUSY_LIMIT, QUICK
from edgeguard.bench.calibration.pricing import price_models
from edgeguard.bench.calibration.profile_store import write_profile
from edgeguard.bench.calibration.rig import Rig
from edgeguard.bench.calibration.summary import provisional_profile
from edgeguard.bench.subject import model_subject
from edgeguard.config import Config
from edgeguard.model.progress import Progress
from peers.system import CLOCK


def write_prices(config: Config, file: Path, *, progress: Progress, busy_limit: float = BUSY_LIMIT) -> Path:
    """The profile that a worker of ``config`` has while it is calibrated: prices, and bounds that bound nothing."""
    subject = model_subject(config, progress=progress)
    rig = Rig.alone(config, subject=subject, effort=QUICK, clock=CLOCK, progress=progress)
    priced = price_models(rig, limit=busy_limit)
    write_profile(provisional_profile(config, fingerprint=subject.identity(), priced=priced), file)
    return file
