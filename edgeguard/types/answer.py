"""What comes back from the worker: an answer that is complete, or the reason why there is none.

There are no partial answers. Durations are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from edgeguard.types.board import ThermalLevel
from edgeguard.types.observation import Observation, Value


class Finish(str, Enum):
    """How a request ended."""

    COMPLETE = "complete"
    DEADLINE = "deadline"  # given up before a pass: a miss had become more likely than not
    INFEASIBLE = "infeasible"  # no plan's bound fits the budget that was left
    INVALID = "invalid"  # an answer that the schema does not allow
    ERROR = "error"  # the runtime failed; ``detail`` says how


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One forward pass of ``k`` new tokens with ``p`` tokens cached."""

    k: int
    p: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the guard asks of the worker. ``answer_by_ns`` is the last useful monotonic time.

    ``level`` is the board's thermal level now: the bound is that level's. ``margin`` (at least 1) is how many times its
    bound the guard leaves a request, while too many of them exceed it.
    """

    request_id: int
    epoch: int
    observation: Observation
    answer_by_ns: int
    shadow: bool = False
    level: ThermalLevel = ThermalLevel.NOMINAL
    margin: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The worker's reply to one request.

    ``bound_ns`` is the bound of the plan that was admitted (or that did not fit), from the start of the work.
    ``started_ns`` and ``finished_ns`` are monotonic times in the worker. ``confidence`` is the probability of the
    chosen path among those that the schema allows, ``None`` when the worker does not state it. ``drafted_tokens`` were
    run as a guess of what the answer would be, and ``accepted_tokens`` of them were right.
    """

    request_id: int
    epoch: int
    finish: Finish
    values: Mapping[str, Value] | None = None
    detail: str = ""
    rung: str = ""
    bound_ns: int | None = None
    started_ns: int = 0
    finished_ns: int = 0
    tokenise_ns: int = 0
    parse_ns: int = 0
    passes: tuple[Pass, ...] = ()
    confidence: float | None = None
    drafted_tokens: int = 0
    accepted_tokens: int = 0

    @property
    def ttft_ns(self) -> int | None:
        """Time to first token: tokenising and the first pass; ``None`` when no pass was made."""
        return self.tokenise_ns + self.passes[0].elapsed_ns if self.passes else None

    @property
    def kept_tokens(self) -> int:
        """The tokens of all its passes that were not run in vain: had every guess been right, one pass of so many."""
        return sum(one.k for one in self.passes) - (self.drafted_tokens - self.accepted_tokens)
