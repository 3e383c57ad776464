"""One request, from its observation to its answer: tokenised, admitted by its bound, decoded, parsed, timed.

With a planner it is refused at once when its bound does not fit the time left, its draft is run as far as its price
allows, and it is given up when a miss has become more likely than not; without one it goes on until the time is over,
with the whole draft. Nanoseconds. Knows nothing of channels. Raises ``EndedError`` for an end without an answer that is
meant, ``CancelledPassError``, and what went wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgeguard.answer import Draft, parse_answer
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


class Attempt:
    """``admit`` false: whatever the bound says. ``token_by_token`` and not ``may_draft`` are for comparisons."""

    def __init__(
        self,
        *,
        model: LanguageModel,
        planner: Planner | None,
        clock: Clock,
        request: Request,
        admit: bool,
        token_by_token: bool,
        may_draft: bool,
    ) -> None:
        self._model, self._planner, self._clock = model, planner, clock
        self._request = request
        self._admitting = admit
        self._token_by_token = token_by_token
        self._may_draft = may_draft
        self._started_ns = clock.now_ns()
        self._plan: Plan | None = None
        self._decoded: Decoded | None = None
        self._tokenise_ns = 0
        self._parse_ns = 0

    def answer(self) -> Mapping[str, Value]:
        """The answer's values; ``EndedError`` when there is none, on purpose."""
        model, clock = self._model, self._clock
        prompt = model.prompt.request(self._request.observation.fields)
        self._tokenise_ns = clock.now_ns() - self._started_ns
        if not model.fits(prompt):
            raise EndedError(
                Finish.INFEASIBLE,
                f"a prompt of {len(prompt)} tokens and an answer of up to {model.answer_tokens} do not fit the cache "
                f"of {model.engine.cache.capacity}",
            )
        self._admit(prompt_tokens=len(prompt))
        decode = model.decoder.decode_token_by_token if self._token_by_token else model.decoder.decode
        self._decoded = decode(prompt, guide=self._guide)
        if self._decoded is None:
            raise EndedError(Finish.DEADLINE, f"given up before pass {len(model.engine.passes) + 1}")
        decoded_ns = clock.now_ns()
        values = parse_answer(model.automaton.text(self._decoded.tokens), fields=model.fields)
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

    def _admit(self, *, prompt_tokens: int) -> None:
        """By what the request costs behind the prefix alone: what else happens to be cached changes no verdict."""
        if self._planner is None:
            return
        model, level = self._model, self._request.level
        prefix = len(model.prompt.prefix)
        draft = model.decoder.draft(model.automaton.start)
        left_ns = self._request.answer_by_ns - self._started_ns
        plan = self._planner.plan(
            draft.reaches if self._may_draft else draft.reaches[:1],
            pending=prompt_tokens - prefix,
            cached=prefix,
            left_ns=left_ns,
            level=level,
        )
        self._plan = plan
        if not self._admitting or plan.fits(left_ns):
            return
        if plan.bound_ns is None:
            raise EndedError(Finish.INFEASIBLE, f"the board is {level.label}, and was never measured so")
        raise EndedError(
            Finish.INFEASIBLE,
            f"the bound of {ms_from_ns(plan.bound_ns):.1f} ms does not fit the {ms_from_ns(left_ns):.1f} ms left",
        )

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
