"""An observation is put to a worker, whatever its bound says, and the answer is timed: how everybody here asks.

Nobody is cut off, for its time must be known: the limit is a broken worker's, not a slow one's. Raises ``WorkerError``
when there is no whole answer. Nanoseconds of the machine's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import NS_PER_S, Clock
from edgeguard.errors import WorkerError
from edgeguard.types import Answer, Finish, Observation, Request, Value

PATIENCE_NS = 30 * NS_PER_S
"""For one answer, or for a few passes that are timed."""

_IDS = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A whole answer, of at least one pass, and from when the observation was captured until it was in our hands."""

    answer: Answer
    elapsed_ns: int


def ask(
    client: WorkerClient,
    fields: Mapping[str, Value],
    *,
    clock: Clock,
    captured_ns: int | None = None,
    may_draft: bool = True,
    token_by_token: bool = False,
    rung: str = "",
) -> Asked:
    """Ask for the answer to what was captured then (default: just now), in the way that is named."""
    now_ns = clock.now_ns()
    captured_ns = now_ns if captured_ns is None else captured_ns
    request = Request(
        request_id=now_ns % _IDS,
        epoch=0,
        observation=Observation(fields=fields, captured_ns=captured_ns),
        answer_by_ns=captured_ns + PATIENCE_NS,
    )
    reply = client.ask(
        request, admit=False, limit_ns=PATIENCE_NS, may_draft=may_draft, token_by_token=token_by_token, rung=rung
    )
    answer = reply.answer
    if answer.finish is not Finish.COMPLETE or not answer.passes:
        raise WorkerError(
            f"the worker ended a request as {answer.finish.value!r}: {answer.detail or 'no pass was made'}"
        )
    return Asked(answer=answer, elapsed_ns=reply.received_ns - captured_ns)
