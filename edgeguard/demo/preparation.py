"""What the demo needs before it can drive: the model's folder, its profile on this machine, a comparison.

Each is made once and found again; from nothing it takes two or three minutes. Raises what keeps one from being made.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from edgeguard.bench.cached import Calibration, load_or_calibrate
from edgeguard.bench.subject import model_folder
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.config import Config
from edgeguard.demo.comparison import Comparison, compare
from edgeguard.model.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What there is, and how long the first two took."""

    folder: Path
    calibration: Calibration
    comparison: Comparison
    model_s: float
    calibration_s: float


def prepare(config: Config, *, clock: Clock, progress: Progress) -> Preparation:
    """Build, measure, compare."""
    began_ns = clock.now_ns()
    folder = model_folder(config, progress=progress)
    built_ns = clock.now_ns()
    calibration = load_or_calibrate(config, clock=clock, progress=progress)
    calibrated_ns = clock.now_ns()
    comparison = compare(config, profile=calibration.file, clock=clock, progress=progress)
    return Preparation(
        folder=folder,
        calibration=calibration,
        comparison=comparison,
        model_s=(built_ns - began_ns) / NS_PER_S,
        calibration_s=(calibrated_ns - built_ns) / NS_PER_S,
    )
