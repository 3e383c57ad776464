"""The demo from nothing to its verdict: model, calibration, guard, a drive through three rooms, faults, figures.

Told once, from top to bottom, to the console that it is given; long phases show through ``bars``. Everything that it
starts has ended when ``tell`` returns. Raises what keeps the demo from starting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.bench.calibration.cached import Calibration, load_or_calibrate
from edgeguard.bench.calibration.effort import QUICK
from edgeguard.bench.subject import model_folder
from edgeguard.board import FixedKernel
from edgeguard.clock import NS_PER_S, Clock, wall_time_iso
from edgeguard.config import Config, load_config
from edgeguard.demo import announcements, timeline
from edgeguard.demo.comparison import Comparison, compare
from edgeguard.demo.drive import Drive
from edgeguard.demo.faults import Fault, Scene
from edgeguard.demo.operator import Operator
from edgeguard.demo.report import report
from edgeguard.demo.robot import Cycle, Robot
from edgeguard.demo.summary import Outcome, Summary, summarise
from edgeguard.demo.world import World
from edgeguard.link.motor import MotorAxis
from edgeguard.link.simulator import Simulator
from edgeguard.model.progress import Progress
from edgeguard.places import default_cache_dir
from edgeguard.plain import to_plain
from edgeguard.runtime.handle import Guard
from edgeguard.runtime.worker_command import WORKER_MODULE, worker_argv

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

SEED = 1
KERNEL_NS = NS_PER_S // 2
FIRST_USE_NS = 130 * NS_PER_S
"""299 requests at 5 Hz take a minute; with a draft and without, two. On a machine that others share fewer of them are
independent: then the profile names a lower percentile, and `edgeguard calibrate` is the way to a better one."""
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
        folder, calibration, comparison = self._prepare(config)
        kernel = FixedKernel(clock=self._clock)
        busy = kernel.busy_factor(for_ns=KERNEL_NS)
        record = default_cache_dir() / "demo" / wall_time_iso().replace(":", "")
        record.mkdir(parents=True)
        with motors_of(config) as motors:
            worker = worker_argv(config.file, calibration.file, models=[folder])
            guard = Guard.start(
                config.file,
                profile=calibration.file,
                port=motors.port,
                state_directory=record,
                worker=[TARDY_WORKER if word == WORKER_MODULE else word for word in worker],
            )
            with guard:
                robot = self._drive(config, guard=guard, motors=motors, cycles=cycles, faults=faults)
            receipts = motors.report().received
        summary = summarise(
            quiet=self._quiet,
            troubled=self._troubled,
            receipts=receipts,
            faults=self._outcomes,
            bound_ns=calibration.verdict.profile.bound.bound_ns,
            prefix_tokens=self._prefix_tokens,
            comparison=comparison,
            busy=max(busy, kernel.busy_factor(for_ns=KERNEL_NS)),
            record=str(record),
        )
        self._keep(record, summary)
        self._print(report(summary, path=robot.world.path, pose=robot.world.pose))
        return summary

    def _prepare(self, config: Config) -> tuple[Path, Calibration, Comparison]:
        """The model's folder, its profile on this machine, a comparison; the first two are found if made before."""
        with self._progress() as progress:
            began_ns = self._clock.now_ns()
            folder = model_folder(config, progress=progress)
        self._print([announcements.built(folder, took_s=self._since_s(began_ns))])
        with self._progress() as progress:
            began_ns = self._clock.now_ns()
            effort = replace(QUICK, limit_ns=FIRST_USE_NS)
            calibration = load_or_calibrate(config, clock=self._clock, progress=progress, effort=effort)
        self._print([announcements.calibrated(calibration, took_s=self._since_s(began_ns))])
        with self._progress() as progress:
            comparison = compare(config, profile=calibration.file, clock=self._clock, progress=progress)
        self._print([announcements.compared(comparison)])
        return folder, calibration, comparison

    def _drive(self, config: Config, *, guard: Guard, motors: Simulator, cycles: int, faults: Sequence[Fault]) -> Robot:
        began_ns = self._clock.now_ns()
        robot = Robot(guard=guard, motors=motors, world=World(), operator=Operator(seed=SEED), clock=self._clock)
        with ExitStack() as undo:
            scene = Scene(robot=robot, clock=self._clock, longest_phrase=_longest_phrase(config), undo=undo)
            drive = Drive(robot=robot, scene=scene, clock=self._clock, seen=self._show)
            status = drive.wait_armed()
            self._prefix_tokens = status.prefix_tokens
            after_s = self._since_s(began_ns)
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
                if outcome.recovered_s is None:  # nothing is left to trouble: the verdict says so
                    break
        return robot

    def _show(self, cycle: Cycle) -> None:
        line = timeline.line(cycle, heard_before=self._heard, narrow=self._narrow)
        self._console.print(line, no_wrap=True, overflow="ellipsis")
        self._heard = cycle.utterance.text

    def _print(self, lines: Iterable[RenderableType]) -> None:
        for line in lines:
            self._console.print(line)

    @contextmanager
    def _progress(self) -> Iterator[Progress]:
        """Bars; where there is no terminal to draw them on, the name of each phase as it begins."""
        begun: set[str] = set()
        with self._bars() as draw:

            def progress(phase: str, done: int, total: int) -> None:
                if phase not in begun and not self._console.is_terminal:
                    self._console.print(f"{phase} …", style="dim")
                begun.add(phase)
                draw(phase, done, total)

            yield progress

    def _since_s(self, began_ns: int) -> float:
        return (self._clock.now_ns() - began_ns) / NS_PER_S

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
