"""The same questions to two workers: forced runs merged with the head cut, and a pass for every token, the head whole.

Both have the prefix cached and are asked the same questions, by turns and at the robot's period, so that whatever the
machine does meets both. Milliseconds from a request's release to its answer.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from edgeguard.bench.observations import draw_fields
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import NS_PER_S, Clock, ms_from_ns
from edgeguard.config import Config
from edgeguard.errors import WorkerError
from edgeguard.model.progress import Progress
from edgeguard.runtime.worker_command import find_model_folder, worker_argv
from edgeguard.types import Finish, Observation, Request

QUESTIONS = 10
_PATIENCE_NS = 30 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Medians, and the first over the second."""

    merged_ms: float
    token_by_token_ms: float
    ratio: float


def compare(config: Config, *, profile: Path, clock: Clock, progress: Progress) -> Comparison:
    """Ask ``QUESTIONS`` each way; workers of its own are started for it."""
    folder = find_model_folder(config)
    questions = list(itertools.islice(draw_fields(config), QUESTIONS))
    number = itertools.count(1)
    elapsed_ms: dict[bool, list[float]] = {False: [], True: []}
    with ExitStack() as stack:
        clients: dict[bool, WorkerClient] = {}
        for token_by_token in (False, True):
            argv = worker_argv(config.file, profile, models=[folder], full_head=token_by_token)
            clients[token_by_token] = stack.enter_context(WorkerClient.start(argv=argv, clock=clock))
        for client in clients.values():
            client.wait_ready(progress=progress)
        for done in range(QUESTIONS):
            progress("comparing with token by token", done, QUESTIONS)
            for token_by_token in (False, True):
                release_ns = clock.now_ns() + config.timing.period_ns
                clock.sleep_until_ns(release_ns)
                request = Request(
                    request_id=next(number),
                    epoch=0,
                    observation=Observation(fields=questions[done], captured_ns=release_ns),
                    answer_by_ns=release_ns + _PATIENCE_NS,
                    shadow=True,
                )
                reply = clients[token_by_token].ask(
                    request, admit=False, limit_ns=_PATIENCE_NS, token_by_token=token_by_token
                )
                if reply.answer.finish is not Finish.COMPLETE:
                    raise WorkerError(f"the worker ended a question with {reply.answer.finish.value!r}")
                elapsed_ms[token_by_token].append(ms_from_ns(reply.received_ns - release_ns))
        progress("comparing with token by token", QUESTIONS, QUESTIONS)
    merged, one_by_one = median(elapsed_ms[False]), median(elapsed_ms[True])
    return Comparison(
        merged_ms=round(merged, 1), token_by_token_ms=round(one_by_one, 1), ratio=round(merged / one_by_one, 3)
    )
