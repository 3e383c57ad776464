"""What a calibration measures with: workers one after the other, the sampler that asks them, and the soak.

Each worker and its sampler have a number, which the samples carry and the observations are drawn by, so that no two
are asked the same. Nanoseconds; whatever keeps a worker from starting is raised, and so is what the robot's own
software ends with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edgeguard.bench.calibration.beside import Beside
from edgeguard.bench.calibration.effort import SCENE, Effort
from edgeguard.bench.calibration.eye import BoardEye, Eye
from edgeguard.bench.calibration.sampling import Block, Sampler
from edgeguard.bench.calibration.soak import Soaker
from edgeguard.bench.observations import draw_fields
from edgeguard.bench.subject import Subject
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.board import FixedKernel, Thermometer, find_board
from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.model.progress import Progress


@dataclass(slots=True, kw_only=True)
class Rig:
    """``begun_ns``: when the run began, from which samples count. ``workers`` have been started so far."""

    config: Config
    clock: Clock
    effort: Effort
    subject: Subject
    kernel: FixedKernel
    eye: Eye
    running: Beside | None
    progress: Progress
    begun_ns: int = 0
    workers: int = 0

    @classmethod
    def alone(cls, config: Config, *, subject: Subject, effort: Effort, clock: Clock, progress: Progress) -> Rig:
        """On this board, with nothing of the robot's beside it; the samples count from now."""
        return cls(
            config=config,
            clock=clock,
            effort=effort,
            subject=subject,
            kernel=FixedKernel(clock=clock),
            eye=BoardEye(Thermometer(find_board(), clock=clock)),
            running=None,
            progress=progress,
            begun_ns=clock.now_ns(),
        )

    @contextmanager
    def worker(self, prices: Path) -> Iterator[Sampler]:
        """A fresh worker that knows the prices, and its sampler."""
        with self.start(prices) as client:
            client.wait_ready(progress=self.progress)
            self.workers += 1
            yield self.sampler(client)

    def start(self, profile: Path | None) -> WorkerClient:
        """A worker that is loading, perhaps without prices."""
        file = self.config.file.absolute()
        return WorkerClient.start(argv=self.subject.command(file, profile), clock=self.clock)

    def sampler(self, client: WorkerClient) -> Sampler:
        """What asks ``client``."""
        return Sampler(
            client=client,
            fields=draw_fields(self.config, seed=1 + self.workers, scene=SCENE),
            period_ns=self.config.timing.period_ns,
            kernel=self.kernel,
            clock=self.clock,
            begun_ns=self.begun_ns,
            look=self.eye.look,
            worker=self.workers,
            seed=1 + self.workers,
            rungs=[rung.name for rung in self.config.rungs],
        )

    def block(self, sampler: Sampler, *, soaked: bool) -> Block:
        """A block during which the robot's own software ran."""
        block = sampler.block(soaked=soaked)
        if self.running is not None:
            self.running.check()
        return block

    def soaker(self) -> Soaker:
        """What heats the board."""
        return Soaker(
            look=self.eye.look,
            clock=self.clock,
            window_ns=self.effort.soak_window_ns,
            progress=self.progress,
            check=(lambda: None) if self.running is None else self.running.check,
        )
