"""The demo from nothing to its verdict: model, calibration, guard, a drive through three rooms, faults, figures.

Told once, from top to bottom, to the console that it is given; long phases show through ``bars``. Everything that it
starts has ended when ``tell`` returns. Raises what keeps the demo from starting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.board import FixedKernel
from edgeguard.clock import NS_PER_S, Clock, wall_time_iso
from edgeguard.config import Config, load_config
from edgeguard.demo import announcements, timeline
from edgeguard.demo.drive import Drive
from edgeguard.demo.faults import Fault, Scene
from edgeguard.demo.operator import Operator
from edgeguard.demo.preparation import Preparation, prepare
from edgeguard.demo.report import report
from edgeguard.demo.robot import Cycle, Robot
from edgeguard.demo.summary import Outcome, Summary, summarise
from edgeguard.demo.world import World
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.model.build import default_cache_dir
from edgeguard.model.progress import Progress
from edgeguard.plain import to_plain
from edgeguard.runtime.handle import Guard
from edgeguard.runtime.worker_command import WORKER_MODULE, worker_argv

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

SEED = 1
KERNEL_NS = NS_PER_S // 2
TARDY_WORKER = "edgeguard.demo.tardy_worker"
ACCEL_SHARE = 2.0
"""The simulated motors follow twice as fast as the configuration lets anybody ask of them."""

Bars = Callable[[], AbstractContextManager[Progress]]


def demo_config() -> Path:
    """The configuration that the demo runs on, and that ``edgeguard init`` copies."""
    return Path(str(resources.files("edgeguard.demo").joinpath("demo.toml")))


class Story:
    """``console`` gets the story, ``bars`` shows long phases."""

    def __init__(self, *, console: Console, bars: Bars, clock: Clock) -> None:
        self._console = console
        self._bars = bars
        self._clock = clock
        self._heard: str | None = None
        self._quiet: list[Cycle] = []
        self._troubled: list[Cycle] = []
        self._outcomes: list[Outcome] = []
        self._prefix_tokens: int | None = None

    def tell(self, *, cycles: int, faults: Sequence[Fault]) -> Summary:
        """Drive for ``cycles`` periods, then let one fault happen after another; the figures."""
        config = load_config(demo_config())
        with self._bars() as progress:
            preparation = prepare(config, clock=self._clock, progress=progress)
        self._print(announcements.prepared(preparation))
        kernel = FixedKernel(clock=self._clock)
        busy = kernel.busy_factor(for_ns=KERNEL_NS)
        folder = default_cache_dir() / "demo" / wall_time_iso().replace(":", "")
        folder.mkdir(parents=True)
        with motors_of(config) as motors:
            robot = self._drive(config, preparation, motors=motors, folder=folder, cycles=cycles, faults=faults)
            receipts = motors.report().received
        summary = summarise(
            quiet=self._quiet,
            troubled=self._troubled,
            receipts=receipts,
            faults=self._outcomes,
            bound_ns=preparation.calibration.verdict.profile.bound.bound_ns,
            prefix_tokens=self._prefix_tokens,
            comparison=preparation.comparison,
            busy=max(busy, kernel.busy_factor(for_ns=KERNEL_NS)),
            record=str(folder),
        )
        self._keep(folder, summary)
        self._print(report(summary, path=robot.world.path, pose=robot.world.pose))
        return summary

    def _drive(
        self,
        config: Config,
        preparation: Preparation,
        *,
        motors: Simulator,
        folder: Path,
        cycles: int,
        faults: Sequence[Fault],
    ) -> Robot:
        began_ns = self._clock.now_ns()
        worker = worker_argv(config.file, preparation.calibration.file, model=preparation.folder)
        guard = Guard.start(
            config.file,
            profile=preparation.calibration.file,
            port=motors.port,
            state_directory=folder,
            worker=[TARDY_WORKER if word == WORKER_MODULE else word for word in worker],
        )
        with guard, ExitStack() as undo:
            robot = Robot(guard=guard, motors=motors, world=World(), operator=Operator(seed=SEED), clock=self._clock)
            scene = Scene(robot=robot, clock=self._clock, longest_phrase=_longest_phrase(config), undo=undo)
            drive = Drive(robot=robot, scene=scene, clock=self._clock, seen=self._show)
            status = drive.wait_armed()
            self._prefix_tokens = status.prefix_tokens
            after_s = (self._clock.now_ns() - began_ns) / NS_PER_S
            self._print(announcements.armed(status, deadline_ns=config.timing.deadline_ns, after_s=after_s))
            self._print(["", timeline.header(narrow=self._narrow)])
            self._quiet += drive.quiet(cycles)
            for fault in faults:
                self._troubled += drive.until_driving()
                self._print([announcements.begins(fault)])
                outcome, suffered = drive.suffer(fault)
                self._troubled += suffered
                self._outcomes.append(outcome)
                self._print([announcements.ended(outcome)])
        return robot

    def _show(self, cycle: Cycle) -> None:
        line = timeline.line(cycle, heard_before=self._heard, narrow=self._narrow)
        self._console.print(line, no_wrap=True, overflow="ellipsis")
        self._heard = cycle.utterance.text

    def _print(self, lines: Iterable[RenderableType]) -> None:
        for line in lines:
            self._console.print(line)

    @property
    def _narrow(self) -> bool:
        return self._console.width < timeline.NARROW_BELOW

    def _keep(self, folder: Path, summary: Summary) -> None:
        """The records as they came, a JSON object a line, and the summary beside them."""
        records = [to_plain(cycle.record) for cycle in (*self._quiet, *self._troubled)]
        (folder / "cycles.jsonl").write_text("".join(f"{json.dumps(record, default=float)}\n" for record in records))
        (folder / "summary.json").write_text(json.dumps(summary.document(), indent=2) + "\n")


def motors_of(config: Config) -> Simulator:
    """A motor controller on a pty, with the axes of this configuration."""
    axes = [
        MotorAxis(name=axis.name, accel=ACCEL_SHARE * axis.rate_up, decel=config.link.controller_decel[axis.name])
        for axis in config.axes
    ]
    return Simulator(axes=axes, link_timeout_ms=config.link.timeout_ns // 1_000_000)


def _longest_phrase(config: Config) -> int:
    said = config.field("said")
    return 0 if said is None else said.max_chars
