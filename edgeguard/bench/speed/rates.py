"""Prompt-processing and decode rates through the real engine, as llama-bench measures and names them.

``pp N``: a prompt of N tokens into an empty cache, in the engine's own pieces. ``tg N``: N passes of one token each,
from an empty cache on. With a depth, so many tokens are in the cache before. The tokens are drawn, nothing is sampled,
and the head is whole. Each task runs once before it counts. Nanoseconds.

What a robot's request takes is another question, which ``edgeguard calibrate`` answers: with its prompt, cached prefix,
merged passes and cut head.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from edgeguard.clock import NS_PER_S, Clock
from edgeguard.engine.engine import Engine
from edgeguard.engine.folder import read_model_folder
from edgeguard.engine.head import whole_head
from edgeguard.engine.providers import find_provider
from edgeguard.engine.session import allowed_threads, import_runtime, open_session
from edgeguard.errors import ConfigError
from edgeguard.model.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """So many tokens of prompt, or of generation, behind so many cached ones: one of the first two is 0."""

    n_prompt: int = 0
    n_gen: int = 0
    n_depth: int = 0

    @property
    def name(self) -> str:
        depth = f" @ d{self.n_depth}" if self.n_depth else ""
        return (f"pp{self.n_prompt}" if self.n_prompt else f"tg{self.n_gen}") + depth

    @property
    def tokens(self) -> int:
        return self.n_prompt or self.n_gen


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One task: ``samples_ns`` of its repetitions, ``steps_ns`` of every pass of one token in them (none for pp)."""

    task: Task
    samples_ns: tuple[int, ...]
    steps_ns: tuple[int, ...]

    @property
    def samples_ts(self) -> tuple[float, ...]:
        return tuple(self.task.tokens * NS_PER_S / elapsed_ns for elapsed_ns in self.samples_ns)

    @property
    def avg_ts(self) -> float:
        return statistics.fmean(self.samples_ts)

    @property
    def stddev_ts(self) -> float:
        return _deviation(self.samples_ts)

    @property
    def avg_ns(self) -> float:
        return statistics.fmean(self.samples_ns)

    @property
    def stddev_ns(self) -> float:
        return _deviation(self.samples_ns)

    @property
    def latencies_ns(self) -> tuple[int, ...]:
        """What somebody waits for: the whole prompt, or one token."""
        return self.steps_ns or self.samples_ns


def measure_rates(
    folder: Path,
    tasks: Sequence[Task],
    *,
    repetitions: int,
    clock: Clock,
    threads: int = 0,
    provider: str = "cpu",
    progress: Progress = silent,
) -> list[Rate]:
    """Each task, repeated. ``threads`` 0: every core this process may use. Raises what kept the model from opening."""
    model = _open(folder, tasks, clock=clock, threads=threads, provider=provider, progress=progress)
    return [model.measure(task, repetitions=repetitions, progress=progress) for task in tasks]


def _open(
    folder: Path, tasks: Sequence[Task], *, clock: Clock, threads: int, provider: str, progress: Progress
) -> _Model:
    progress("loading", 0, 1)
    row = find_provider(provider)
    runtime = import_runtime(row)
    model = read_model_folder(folder)
    needed = max(task.n_depth + task.tokens for task in tasks)
    if needed > model.context:
        raise ConfigError(f"{folder.name} reads {model.context} tokens at most, and a test has {needed}")
    head = whole_head(model, why="as asked")
    opened = open_session(
        folder=model,
        head=head,
        provider=row,
        threads=allowed_threads(threads),
        provider_options={},
        session_options={},
    )
    engine = Engine(
        runtime=runtime, session=opened.session, folder=model, head=head, provider=row, capacity=needed, clock=clock
    )
    progress("loading", 1, 1)
    drawn = random.Random(0)
    tokens = [drawn.randrange(model.vocabulary) for _ in range(needed)]
    return _Model(engine=engine, tokens=tokens, clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    engine: Engine
    tokens: Sequence[int]
    clock: Clock

    def measure(self, task: Task, *, repetitions: int, progress: Progress) -> Rate:
        progress(task.name, 0, repetitions)
        self._run(task)
        samples_ns, steps_ns = [], []
        for done in range(1, repetitions + 1):
            samples_ns.append(self._run(task))
            steps_ns += [one.elapsed_ns for one in self.engine.passes] if task.n_gen else []
            progress(task.name, done, repetitions)
        return Rate(task=task, samples_ns=tuple(samples_ns), steps_ns=tuple(steps_ns))

    def _run(self, task: Task) -> int:
        """The task once, on a cache of its depth; the time that it takes."""
        engine, end = self.engine, task.n_depth + task.tokens
        engine.cache.rewind(0)
        engine.prefill(self.tokens[: task.n_depth])
        engine.begin()
        began_ns = self.clock.now_ns()
        if task.n_prompt:
            engine.prefill(self.tokens[:end])
        else:
            for at in range(task.n_depth, end):
                engine.run([self.tokens[at]], again=False)
        return self.clock.now_ns() - began_ns


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
