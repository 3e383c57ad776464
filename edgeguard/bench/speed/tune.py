"""The setting with the best *tail* on this machine: threads, spinning, affinity, block base, one knob after the other.

In a round the setting that is kept so far and the other positions of one knob are asked the same observations by turns,
each in a real worker, in random order, at the robot's period; who is not being asked is stopped. The other position
with the least tail is kept when it *really* is better: when its tail is the lower one in 95 % of the resamplings of the
requests, the same for both. What has been found is then asked against what was configured once more, on other
observations, because the best of several is partly the luckiest; without that last proof the configured one stays.

Nearest-rank percentiles of nanoseconds from handing an observation over to having its answer. Seeded. Raises what
starting a worker raises, ``BusyError`` on a busy machine, ``WorkerError`` for a request that fails.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile

from edgeguard.bench.asking import ask
from edgeguard.bench.bootstrap import RESAMPLINGS, resampled
from edgeguard.bench.calibration.effort import SCENE
from edgeguard.bench.observations import draw_fields
from edgeguard.bench.percentile import percentile
from edgeguard.bench.speed.setting import KNOBS, Setting, alternatives, configured, written
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import Clock
from edgeguard.config import Config
from edgeguard.engine.providers import find_provider
from edgeguard.errors import ConfigError
from edgeguard.model.progress import Progress, silent

SURE = 0.95
WARM_UP = 5
FINAL = "the final"

WorkerCommand = Callable[[Path], Sequence[str]]
"""The command line of a worker for a configuration; ``{fd}`` stands for its channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One setting in one round. ``better``: the share of resamplings in which its tail is below the first one's."""

    setting: Setting
    median_ns: float
    tail_ns: float
    better: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """``tried[0]`` is what was kept before it, ``tried[kept]`` what is kept after it."""

    knob: str
    tried: tuple[Tried, ...]
    kept: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """``found`` is ``before`` where nothing really was better."""

    share: float
    requests: int
    before: Setting
    found: Setting
    rounds: tuple[Round, ...]


def tune(
    config: Config,
    *,
    command: WorkerCommand,
    processors: Sequence[int],
    clock: Clock,
    share: float,
    requests: int,
    progress: Progress = silent,
) -> Tuning:
    """Try every knob; ``share`` is the percentile of the tail, ``requests`` are of each setting in a round."""
    provider = find_provider(config.model.provider)
    if provider.ort_name != "CPUExecutionProvider":
        raise ConfigError(
            f"{config.file}: model.provider is {provider.name!r}; what tune tries makes a difference on cpu"
        )
    bench = _Bench(config, command=command, clock=clock, share=share, requests=requests, progress=progress)
    before = kept = configured(config)
    for knob in KNOBS:
        others = alternatives(knob, kept, processors=processors)
        kept = bench.hold(knob, [kept, *others]) if others else kept
    if kept != before:
        kept = bench.hold(FINAL, [before, kept])
    return Tuning(share=share, requests=requests, before=before, found=kept, rounds=tuple(bench.rounds))


class _Bench:
    """Holds rounds, each on observations of its own."""

    def __init__(
        self,
        config: Config,
        *,
        command: WorkerCommand,
        clock: Clock,
        share: float,
        requests: int,
        progress: Progress,
    ) -> None:
        self.rounds: list[Round] = []
        self._config, self._command, self._clock = config, command, clock
        self._share, self._requests, self._progress = share, requests, progress
        self._before = configured(config)

    def hold(self, knob: str, settings: Sequence[Setting]) -> Setting:
        """Which of these is kept; the first is, unless another really is better."""
        seed = 1 + len(self.rounds)
        with ExitStack() as stack:
            clients = [stack.enter_context(self._started(setting)) for setting in settings]
            times = self._ask(clients, knob=knob, seed=seed)
        draw = random.Random(seed)
        tried = tuple(
            Tried(
                setting=setting,
                median_ns=percentile(own, 0.5),
                tail_ns=percentile(own, self._share),
                better=better(own, times[0], share=self._share, draw=draw),
            )
            for setting, own in zip(settings, times, strict=True)
        )
        best = min(range(1, len(tried)), key=lambda at: tried[at].tail_ns)
        kept = best if tried[best].better >= SURE else 0
        self.rounds.append(Round(knob=knob, tried=tried, kept=kept))
        return settings[kept]

    def _started(self, setting: Setting) -> WorkerClient:
        """A worker that is ready and stopped. It has read its configuration by then, from beside the robot's own."""
        file = self._config.file.absolute()
        text = written(file.read_bytes().decode(), setting, before=self._before)
        try:
            with (
                NamedTemporaryFile(dir=file.parent, prefix=".tune-", suffix=".toml") as scratch,
                ExitStack() as until_ready,
            ):
                scratch.write(text.encode())
                scratch.flush()
                client = until_ready.enter_context(
                    WorkerClient.start(argv=self._command(Path(scratch.name)), clock=self._clock)
                )
                client.wait_ready(progress=self._progress)
                until_ready.pop_all()
        except OSError as error:
            raise ConfigError(
                f"{file.parent}: no scratch file can be written beside the configuration ({error.strerror}); tune a "
                "copy of it in another folder"
            ) from error
        client.pause()
        return client

    def _ask(self, clients: Sequence[WorkerClient], *, knob: str, seed: int) -> list[list[int]]:
        """Nanoseconds of every client, in the order of the observations."""
        clock, draw, period_ns = self._clock, random.Random(seed), self._config.timing.period_ns
        times: list[list[int]] = [[] for _ in clients]
        total, due_ns = WARM_UP + self._requests, clock.now_ns()
        for number, fields in enumerate(islice(draw_fields(self._config, seed=seed, scene=SCENE), total)):
            self._progress(f"trying {knob}", number, total)
            for at in draw.sample(range(len(clients)), len(clients)):
                clients[at].resume()
                clock.sleep_until_ns(due_ns)
                asked = ask(clients[at], fields, clock=clock)
                clients[at].pause()
                due_ns = max(due_ns + period_ns, clock.now_ns())
                if number >= WARM_UP:
                    times[at].append(asked.elapsed_ns)
        self._progress(f"trying {knob}", total, total)
        for client in clients:
            client.resume()
        return times


def better(own: Sequence[int], other: Sequence[int], *, share: float, draw: random.Random) -> float:
    """In which share of resamplings of the requests, the same for both, the tail of ``own`` is below ``other``'s."""

    def longer(at: Sequence[int]) -> float:
        return percentile([own[one] for one in at], share) - percentile([other[one] for one in at], share)

    return bisect.bisect_left(resampled(len(own), longer, draw=draw), 0) / RESAMPLINGS
