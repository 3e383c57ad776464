"""The raw samples beside a profile, when they are there: every pass of every request, and how busy the machine was.

Reads a copy, because the file may be a calibration's that is still being made. What is not there, or is not of this
profile, is said in words, and the page does without.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path

from edgeguard.bench.calibration.journal import Journal, Measured
from edgeguard.bench.calibration.sample import Sample
from edgeguard.bench.calibration.sampling import Block
from edgeguard.budget import Profile
from edgeguard.errors import ProfileError


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """``blocks`` in the order of the run, those that were dropped among them; ``missing`` says why there are none."""

    blocks: tuple[Block, ...] = ()
    missing: str = ""

    @property
    def requests(self) -> list[Sample]:
        return [sample for block in self.blocks for sample in block.samples]

    def of(self, rungs: Container[str]) -> Samples:
        """Those of these rungs alone."""
        blocks = [replace(one, samples=tuple(s for s in one.samples if s.rung in rungs)) for one in self.blocks]
        return replace(self, blocks=tuple(blocks))


def read_samples(profile: Profile, file: Path) -> Samples:
    """Those of ``profile``, which is in ``file``."""
    beside = Journal.beside(file).file
    if not beside.exists():
        return Samples(missing=f"{beside.name} is not beside the profile")
    what = Measured(fingerprint=profile.fingerprint, kind=profile.kind, period_ns=profile.schedule.period_ns)
    try:
        with tempfile.TemporaryDirectory(prefix="edgeguard-") as folder:
            copy = Path(shutil.copy(beside, folder))
            return Samples(blocks=tuple(Journal(copy).resume(what).blocks))
    except ProfileError:
        return Samples(missing=f"{beside.name} is of another calibration than the profile")
    except OSError as error:
        return Samples(missing=f"{beside.name} cannot be read ({error.strerror})")
