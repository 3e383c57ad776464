"""One request, from its observation to its answer: tokenised, admitted by its bound, decoded, parsed, timed.

With planners the first rung runs whose bound fits the time that is left when it is looked at; where none fits the
request is refused at once. Its draft is run as far as its price allows, and it is given up when a miss has become more
likely than not. Without planners the best rung goes on until the time is over, with the whole draft. Nanoseconds. Knows
nothing of channels. Raises ``EndedError`` for an end without an answer that is meant, ``CancelledPassError``, and what
went wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgeguard.answer import Draft
from edgeguard.budget import Plan, Planner
from edgeguard.clock import Clock, ms_from_ns
from edgeguard.engine.decoder import Decoded
from edgeguard.engine.language_model import LanguageModel
from edgeguard.errors import EdgeguardError
from edgeguard.types import Answer, Finish, Request, Value


class EndedError(EdgeguardError):
    """A request that ends without an answer, on purpose."""

    def __init__(self, finish: Finish, detail: str) -> None:
        self.finish = finish
        super().__init__(detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One rung of the ladder, loaded, and what its requests may take, where that is known."""

    model: LanguageModel
    planner: Planner | None


class Attempt:
    """``rungs`` are at least one, the best first. ``admit`` false: the first of them, whatever the bound says.
    ``token_by_token`` and not ``may_draft`` are for comparisons.
    """

    def __init__(
        self,
        *,
        rungs: Sequence[Rung],
        clock: Clock,
        request: Request,
        admit: bool,
        token_by_token: bool,
        may_draft: bool,
    ) -> None:
        self._rungs, self._clock = rungs, clock
        self._model, self._planner = rungs[0].model, rungs[0].planner  # of the rung that is looked at, then run
        self._request = request
        self._admitting = admit
        self._token_by_token = token_by_token
        self._may_draft = may_draft
        self._started_ns = clock.now_ns()
        self._plan: Plan | None = None
        self._situation: tuple[str, ...] = ()
        self._decoded: Decoded | None = None
        self._tokenise_ns = 0
        self._parse_ns = 0

    def answer(self) -> Mapping[str, Value]:
        """The answer's values; ``EndedError`` when there is none, on purpose."""
        clock, prompt = self._clock, self._choose()
        model = self._model
        if self._token_by_token:
            self._decoded = model.decoder.decode_token_by_token(prompt, guide=self._guide)
        else:
            self._decoded = model.decoder.decode(prompt, situation=self._situation, guide=self._guide)
        if self._decoded is None:
            raise EndedError(Finish.DEADLINE, f"given up before pass {len(model.engine.passes) + 1}")
        decoded_ns = clock.now_ns()
        values = model.values(self._decoded.tokens)
        self._parse_ns = clock.now_ns() - decoded_ns
        return values

    def reply(self, *, finish: Finish, values: Mapping[str, Value] | None, detail: str) -> Answer:
        """What is said of it, however it ended."""
        decoded = self._decoded
        return Answer(
            request_id=self._request.request_id,
            epoch=self._request.epoch,
            finish=finish,
            values=values,
            detail=detail,
            rung=self._model.rung,
            bound_ns=None if self._plan is None else self._plan.bound_ns,
            started_ns=self._started_ns,
            finished_ns=self._clock.now_ns(),
            tokenise_ns=self._tokenise_ns,
            parse_ns=self._parse_ns,
            passes=tuple(self._model.engine.passes),
            confidence=None if decoded is None else decoded.confidence,
            drafted_tokens=0 if decoded is None else decoded.drafted,
            accepted_tokens=0 if decoded is None else decoded.accepted,
        )

    def _choose(self) -> list[int]:
        """The prompt of the rung that runs: of the first whose bound, with the guard's margin, fits; else of the last
        that has one, if it fits as calibrated. What it takes to look at one is taken from those below it.
        """
        level, margin = self._request.level, self._request.margin
        proving = next((one for one in reversed(self._rungs) if one.planner is None or one.planner.knows(level)), None)
        looks = [(rung, 1.0 if rung is proving else margin) for rung in self._rungs]
        refusals: list[str] = []
        looked_ns = self._started_ns
        for rung, margin in looks:
            self._model, self._planner, self._plan = rung.model, rung.planner, None
            fields = self._request.observation.fields
            prompt = self._model.prompt.request(fields)
            self._situation = self._model.prompt.situation(fields)
            self._tokenise_ns = self._clock.now_ns() - self._started_ns
            left_ns = int((self._request.answer_by_ns - looked_ns) / margin)
            refusal = self._refusal(prompt, left_ns=left_ns)
            if not refusal:
                return prompt
            refusals.append(f"{rung.model.rung}: {refusal}" if len(looks) > 1 else refusal)
            looked_ns = self._clock.now_ns()
        raise EndedError(Finish.INFEASIBLE, "; ".join(refusals))

    def _refusal(self, prompt: Sequence[int], *, left_ns: int) -> str:
        """Why this rung may not run; empty when it may.

        By what the request costs behind its prefix alone: what else happens to be cached changes no verdict.
        """
        model, level = self._model, self._request.level
        if not model.fits(prompt):
            return (
                f"a prompt of {len(prompt)} tokens and an answer of up to {model.answer_tokens} do not fit the cache "
                f"of {model.engine.cache.capacity}"
            )
        if self._planner is None:
            return ""
        prefix = len(model.prompt.prefix)
        draft = model.decoder.draft(model.automaton.start, situation=self._situation)
        self._plan = plan = self._planner.plan(
            draft.reaches if self._may_draft else draft.reaches[:1],
            pending=len(prompt) - prefix,
            cached=prefix,
            left_ns=left_ns,
            level=level,
        )
        if not self._admitting or plan.fits(left_ns):
            return ""
        if plan.bound_ns is None:
            return f"the board is {level.label}, and was never measured so"
        return f"the bound of {ms_from_ns(plan.bound_ns):.1f} ms does not fit the {ms_from_ns(left_ns):.1f} ms left"

    def _guide(self, draft: Draft, *, state: int, pending: int, cached: int) -> int | None:
        """The decoder's ``Guide``."""
        left_ns = self._request.answer_by_ns - self._clock.now_ns()
        reaches = draft.reaches if self._may_draft else draft.reaches[:1]
        if self._planner is None or self._plan is None:
            return len(reaches) - 1 if left_ns > 0 else None
        made = self._model.engine.passes
        reach = min(self._plan.reach, len(reaches) - 1)
        if made:
            left_of_promise_ns = self._plan.promised_ns - self._planner.spent_ns([(one.k, one.p) for one in made])
            reach = self._planner.reach(reaches, pending=pending, cached=cached, left_of_promise_ns=left_of_promise_ns)
        late = self._planner.more_likely_late(
            reaches, reach, state=state, pending=pending, cached=cached, left_ns=left_ns
        )
        return None if late else reach
