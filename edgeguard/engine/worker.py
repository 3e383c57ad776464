"""The process that owns the model: ``python -m edgeguard.engine.worker FD CONFIG [PROFILE] --model FOLDER``.

It loads and warms up, says ``ready``, and answers requests until its channel closes; the messages are those of
``edgeguard.messages``. With a profile it refuses at once what its bound does not fit, and gives up when a miss has
become more likely than not; without one it goes on until the time is over. A cancelled request has no answer.
The last answer is the draft of the next, as far as its price allows; a request may forbid it (``draft`` false), for
comparisons. With ``--full-head`` a pass has a logit for every token, as in a plain runtime, and requests may be
``token_by_token``.

Whatever goes wrong in a request is its answer, ``finish = error``, and the next one is served. What keeps the worker
from becoming ready is said in ``failed``, with the exit code that the process leaves with.
"""

from __future__ import annotations

import argparse
import functools
import gc
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from edgeguard.answer import Draft, PathPrices, parse_answer
from edgeguard.budget import Plan, Planner, Profile, load_profile
from edgeguard.channel import Channel, Message
from edgeguard.clock import Clock, SystemClock, ms_from_ns
from edgeguard.config import load_config
from edgeguard.engine.decoder import Decoded
from edgeguard.engine.engine import CancelledPassError
from edgeguard.engine.inbox import Inbox
from edgeguard.engine.language_model import LanguageModel, load_language_model
from edgeguard.errors import AnswerError, EdgeguardError
from edgeguard.messages import answer_message, read_request
from edgeguard.types import Answer, Finish, Request, ThermalLevel, Value


class EndedError(EdgeguardError):
    """A request that ends without an answer, on purpose."""

    def __init__(self, finish: Finish, detail: str) -> None:
        self.finish = finish
        super().__init__(detail)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One request while it is worked on."""

    request: Request
    admit: bool
    token_by_token: bool
    may_draft: bool
    started_ns: int
    plan: Plan | None = None
    tokenise_ns: int = 0
    parse_ns: int = 0
    decoded: Decoded | None = None


class Worker:
    """Answers one request after another."""

    def __init__(
        self,
        *,
        model: LanguageModel,
        profile: Profile | None,
        channel: Channel,
        clock: Clock,
        uncalibrated_factor: float | None = None,
    ) -> None:
        self._model = model
        self._profile = profile
        self._planner = None if profile is None else _planner(model, profile, uncalibrated_factor)
        self._channel = channel
        self._clock = clock

    def run(self) -> NoReturn:
        """Say ``ready`` and serve; the inbox ends the process when the channel closes."""
        model, engine = self._model, self._model.engine
        self._channel.send({
            "type": "ready",
            "identity": model.identity,
            "prefix_tokens": len(model.prompt.prefix),
            "capacity_tokens": engine.cache.capacity,
            "bound_ns": None if self._profile is None else self._profile.bound.bound_ns,
            "answer_passes": model.answer_passes,
            "pass_sizes": model.pass_sizes,
        })  # fmt: skip
        inbox = Inbox(channel=self._channel, begin=engine.begin, cancel=engine.cancel)
        while True:
            message = inbox.take()
            if message["type"] == "sweep":
                self._sweep(message)
            elif message["type"] == "request":
                self._serve(message)

    def _sweep(self, message: Message) -> None:
        swept = self._model.sweep(message["sizes"], repeats=message["repeats"], depths=message.get("depths", ()))
        rows = [{"k": times.k, "p": times.p, "elapsed_ns": list(times.elapsed_ns)} for times in swept]
        self._channel.send({"type": "swept", "rows": rows})

    def _serve(self, message: Message) -> None:
        read = read_request(message)
        if read is None:
            return
        request, admit = read
        work = _Work(
            request=request,
            admit=admit,
            token_by_token=message.get("token_by_token") is True,
            may_draft=message.get("draft") is not False,
            started_ns=self._clock.now_ns(),
        )
        values, finish, detail = None, Finish.COMPLETE, ""
        try:
            values = self._answer(work)
        except CancelledPassError:
            return
        except EndedError as end:
            finish, detail = end.finish, str(end)
        except AnswerError as error:
            finish, detail = Finish.INVALID, str(error)
        except EdgeguardError as error:
            finish, detail = Finish.ERROR, str(error)
        except Exception as error:  # noqa: BLE001 - one request's failure, of whatever kind, is that request's alone
            traceback.print_exc()
            finish, detail = Finish.ERROR, f"{type(error).__name__}: {error}"
        self._channel.send(answer_message(self._reply(work, finish=finish, values=values, detail=detail)))

    def _answer(self, work: _Work) -> Mapping[str, Value]:
        model, clock = self._model, self._clock
        prompt = model.prompt.request(work.request.observation.fields)
        work.tokenise_ns = clock.now_ns() - work.started_ns
        if not model.fits(prompt):
            raise EndedError(
                Finish.INFEASIBLE,
                f"a prompt of {len(prompt)} tokens and an answer of up to {model.answer_tokens} do not fit the cache "
                f"of {model.engine.cache.capacity}",
            )
        self._admit(work, prompt_tokens=len(prompt))
        decode = model.decoder.decode_token_by_token if work.token_by_token else model.decoder.decode
        work.decoded = decode(prompt, guide=functools.partial(self._guide, work))
        if work.decoded is None:
            raise EndedError(Finish.DEADLINE, f"given up before pass {len(model.engine.passes) + 1}")
        decoded_ns = clock.now_ns()
        values = parse_answer(model.automaton.text(work.decoded.tokens), fields=model.fields)
        work.parse_ns = clock.now_ns() - decoded_ns
        return values

    def _admit(self, work: _Work, *, prompt_tokens: int) -> None:
        """By what the request costs behind the prefix alone: what else happens to be cached changes no verdict."""
        if self._planner is None:
            return
        model, level = self._model, work.request.level
        prefix = len(model.prompt.prefix)
        draft = model.decoder.draft(model.automaton.start)
        left_ns = work.request.answer_by_ns - work.started_ns
        plan = self._planner.plan(
            draft.reaches if work.may_draft else draft.reaches[:1],
            pending=prompt_tokens - prefix,
            cached=prefix,
            left_ns=left_ns,
            level=level,
        )
        work.plan = plan
        if not work.admit or plan.fits(left_ns):
            return
        if plan.bound_ns is None:
            raise EndedError(Finish.INFEASIBLE, f"the board is {level.label}, and was never measured so")
        raise EndedError(
            Finish.INFEASIBLE,
            f"the bound of {ms_from_ns(plan.bound_ns):.1f} ms does not fit the {ms_from_ns(left_ns):.1f} ms left",
        )

    def _guide(self, work: _Work, draft: Draft, *, state: int, pending: int, cached: int) -> int | None:
        """The ``Guide`` of one request's decoding."""
        left_ns = work.request.answer_by_ns - self._clock.now_ns()
        reaches = draft.reaches if work.may_draft else draft.reaches[:1]
        if self._planner is None or work.plan is None:
            return len(reaches) - 1 if left_ns > 0 else None
        made = self._model.engine.passes
        reach = min(work.plan.reach, len(reaches) - 1)
        if made:
            left_of_promise_ns = work.plan.promised_ns - self._planner.spent_ns([(one.k, one.p) for one in made])
            reach = self._planner.reach(reaches, pending=pending, cached=cached, left_of_promise_ns=left_of_promise_ns)
        late = self._planner.more_likely_late(
            reaches, reach, state=state, pending=pending, cached=cached, left_ns=left_ns
        )
        return None if late else reach

    def _reply(self, work: _Work, *, finish: Finish, values: Mapping[str, Value] | None, detail: str) -> Answer:
        decoded = work.decoded
        return Answer(
            request_id=work.request.request_id,
            epoch=work.request.epoch,
            finish=finish,
            values=values,
            detail=detail,
            bound_ns=None if work.plan is None else work.plan.bound_ns,
            started_ns=work.started_ns,
            finished_ns=self._clock.now_ns(),
            tokenise_ns=work.tokenise_ns,
            parse_ns=work.parse_ns,
            passes=tuple(self._model.engine.passes),
            confidence=None if decoded is None else decoded.confidence,
            drafted_tokens=0 if decoded is None else decoded.drafted,
            accepted_tokens=0 if decoded is None else decoded.accepted,
        )


def _planner(model: LanguageModel, profile: Profile, uncalibrated_factor: float | None) -> Planner:
    automaton, prefix = model.automaton, len(model.prompt.prefix)
    paths = PathPrices(automaton=automaton, price=profile.cost.price_ns)
    bounds = {
        (level, drafted): profile.bound_for(level, drafted=drafted, beyond=uncalibrated_factor)
        for level in ThermalLevel
        for drafted in (False, True)
    }
    scores = {cell: bound.score for cell, bound in bounds.items() if bound is not None}
    planner = Planner(cost=profile.cost, scores=scores, paths=paths)
    request_tokens = range(1, model.prompt.longest - prefix + 1)
    planner.prepare(state=automaton.start, request_tokens=request_tokens, cached=prefix)
    return planner


def _start(arguments: argparse.Namespace, *, channel: Channel, clock: Clock) -> Worker:
    def progress(phase: str, done: int, total: int) -> None:
        channel.send({"type": "warming", "phase": phase, "done": done, "total": total})

    config = load_config(arguments.config)
    profile = None if arguments.profile is None else load_profile(arguments.profile)
    model = load_language_model(
        config=config, folder=arguments.model, clock=clock, progress=progress, full_head=arguments.full_head
    )
    model.warm_up(progress)
    return Worker(
        model=model,
        profile=profile,
        channel=channel,
        clock=clock,
        uncalibrated_factor=config.risk.uncalibrated_factor,
    )


def main(channel_at: Callable[[int], Channel] = Channel.from_fd) -> None:
    """``channel_at`` opens the channel at a descriptor, in its own way if it has one (a fault that is injected)."""
    parser = argparse.ArgumentParser(prog="python -m edgeguard.engine.worker")
    parser.add_argument("fd", type=int, metavar="FD", help="the descriptor of its end of the channel")
    parser.add_argument("config", type=Path, metavar="CONFIG")
    parser.add_argument("profile", type=Path, metavar="PROFILE", nargs="?")
    parser.add_argument("--model", type=Path, metavar="FOLDER", required=True, help="where model.folder was found")
    parser.add_argument("--full-head", action="store_true", help="keep a logit for every token, for comparisons")
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    channel = channel_at(arguments.fd)
    try:
        worker = _start(arguments, channel=channel, clock=SystemClock())
    except EdgeguardError as error:
        channel.send({"type": "failed", "error": str(error), "exit_code": error.exit_code})
        sys.exit(error.exit_code)
    gc.collect()
    gc.freeze()  # the automaton may be large; a collection must not walk it between two passes
    worker.run()


if __name__ == "__main__":
    main()
