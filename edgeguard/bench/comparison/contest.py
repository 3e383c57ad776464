"""Several models answer the same cases in turn, each in a worker process of its own, as on the robot.

All workers are started first; then every case is put to each of them, in an order that is drawn anew for each case, so
that what happens to the machine meanwhile happens to all. A time is from handing the request over to having its answer
in our hands; the first cases are put once before, and left out. Without drafts: a case has nothing to do with the one
before it. Seeded; nanoseconds.

Raises whatever keeps a worker from starting, and ``WorkerError`` for one that fails at a case.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from edgeguard.bench.comparison.evaluation import Case
from edgeguard.bench.worker_client import Ready, WorkerClient
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.config import Config
from edgeguard.engine.providers import provider_of
from edgeguard.errors import ConfigError, WorkerError
from edgeguard.model.build import build
from edgeguard.model.progress import Progress, silent
from edgeguard.model.variant import find_variant, names_folder
from edgeguard.runtime.model_choice import for_provider
from edgeguard.runtime.worker_command import worker_argv
from edgeguard.types import Finish, Observation, Request, Value

WARM_UP = 5
"""Cases that are put to everybody once before it counts, while caches and the machine get used to it."""

PATIENCE_NS = 60 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A model under the name by which it was asked for, and the configuration it answers with."""

    name: str
    folder: Path
    config: Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one case. ``judged``: per field that matters, whether it is right; ``values`` None: no answer."""

    case: Case
    values: Mapping[str, Value] | None
    judged: Mapping[str, bool]
    confidence: float | None
    elapsed_ns: int

    @property
    def exact(self) -> bool:
        return all(self.judged.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One contender's outcomes, in the order of the cases."""

    contender: Contender
    outcomes: tuple[Outcome, ...]
    resident_bytes: int
    prefix_tokens: int

    @property
    def times_ns(self) -> list[int]:
        return [outcome.elapsed_ns for outcome in self.outcomes]


def find_contender(model: str, *, name: str, config: Config, progress: Progress = silent) -> Contender:
    """A model folder (with a ``/``), or a recipe's variant, which is built if it has not been."""
    if not names_folder(model):
        recipe = for_provider(find_variant(model), provider_of(config))
        return Contender(name=name, folder=build(recipe, progress=progress), config=config)
    if "+" in model:
        raise ConfigError(f"{model!r}: an adapter is built into a recipe's model, not into a finished folder")
    return Contender(name=name, folder=Path(model).absolute(), config=config)


WorkerCommand = Callable[[Contender], Sequence[str]]


def model_worker(contender: Contender) -> list[str]:
    """The command line of the real worker."""
    return worker_argv(contender.config.file, None, models=[contender.folder])


def run_contest(
    contenders: Sequence[Contender],
    cases: Sequence[Case],
    *,
    seed: int,
    clock: Clock,
    progress: Progress = silent,
    command: WorkerCommand = model_worker,
) -> list[Run]:
    """Put every case to every contender."""
    draw = random.Random(seed)
    questions = [*cases[:WARM_UP], *cases]
    outcomes: list[list[Outcome]] = [[] for _ in contenders]
    with ExitStack() as stack:
        clients = [
            stack.enter_context(WorkerClient.start(argv=command(contender), clock=clock)) for contender in contenders
        ]
        ready = [_await(client, contender, progress) for client, contender in zip(clients, contenders, strict=True)]
        progress("asking", 0, len(questions))
        for done, case in enumerate(questions, start=1):
            for at in draw.sample(range(len(contenders)), len(contenders)):
                outcomes[at].append(_ask(clients[at], case, name=contenders[at].name, number=done, clock=clock))
            progress("asking", done, len(questions))
        resident = [client.resident_bytes() for client in clients]
    return [
        Run(
            contender=contender,
            outcomes=tuple(outcomes[at][-len(cases) :]),
            resident_bytes=resident[at],
            prefix_tokens=ready[at].prefix_tokens,
        )
        for at, contender in enumerate(contenders)
    ]


def _await(client: WorkerClient, contender: Contender, progress: Progress) -> Ready:
    return client.wait_ready(progress=lambda phase, done, total: progress(f"{contender.name}: {phase}", done, total))


def _ask(client: WorkerClient, case: Case, *, name: str, number: int, clock: Clock) -> Outcome:
    asked_ns = clock.now_ns()
    request = Request(
        request_id=number,
        epoch=0,
        observation=Observation(fields=case.observation, captured_ns=asked_ns),
        answer_by_ns=asked_ns + PATIENCE_NS,
    )
    reply = client.ask(request, admit=False, limit_ns=PATIENCE_NS, may_draft=False)
    answer = reply.answer
    if answer.finish is Finish.ERROR:
        raise WorkerError(f"{name}: case {case.id!r}: {answer.detail}")
    return Outcome(
        case=case,
        values=answer.values,
        judged=case.judge(answer.values),
        confidence=answer.confidence,
        elapsed_ns=reply.received_ns - asked_ns,
    )
