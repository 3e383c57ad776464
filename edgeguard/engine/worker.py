"""The process that owns the model: ``python -m edgeguard.engine.worker FD CONFIG [PROFILE] --model FOLDER``.

It loads and warms up, says ``ready``, and answers requests until its channel closes; the messages are those of
``edgeguard.messages``. With a profile the first rung of the ladder of plans runs whose bound fits; it refuses at once
what fits none, and gives up when a miss has become more likely than not; without one the first goes on until the time
is over. A request that is called off while it runs is answered all the same, ``finish = deadline``: the guard hears
that the worker lives. One that waits is forgotten. A rung's last answer to the same words and flags is the draft of
its next, as far as its price allows; a request may forbid it (``draft`` false), for comparisons, and name its ``rung``,
for calibration. With ``--full-head`` a pass has a logit for every token, as in a plain runtime, and requests may be
``token_by_token``.

Whatever goes wrong in a request is its answer, ``finish = error``, and the next one is served. What keeps the worker
from becoming ready is said in ``failed``, with the exit code that the process leaves with.
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from edgeguard.answer import PathPrices
from edgeguard.budget import Planner, Profile, load_profile
from edgeguard.channel import Channel, Message
from edgeguard.clock import NS_PER_S, Clock, SystemClock, ms_from_ns
from edgeguard.config import load_config
from edgeguard.engine.attempt import Attempt, EndedError, Rung
from edgeguard.engine.engine import CancelledPassError
from edgeguard.engine.identity import joint_identity
from edgeguard.engine.inbox import Inbox
from edgeguard.engine.ladder import load_ladder, roomiest
from edgeguard.engine.language_model import LanguageModel
from edgeguard.errors import AnswerError, EdgeguardError, ProfileError
from edgeguard.messages import answer_message, read_request
from edgeguard.types import Finish, ThermalLevel

SPEED_REPEATS = 10
SPEED_LIMIT = 5.0
"""A provider that has fallen back, or another clock, makes ten times and more; a hot board less than two."""

TIDYING_BYTES = 64 * 1024
"""glibc puts together what a pass has freed in small pieces when a large one is asked for the next time: 0.1 ms of a
request, unless it was asked for before (ptmalloc's ``malloc_consolidate``)."""

SPEED_TRIES = 6
SPEED_PAUSE_NS = NS_PER_S
"""A machine that boots is busy for seconds, and a start that is refused waits for the operator."""


class Worker:
    """Answers one request after another."""

    def __init__(
        self,
        *,
        ladder: Sequence[LanguageModel],
        profile: Profile | None,
        channel: Channel,
        clock: Clock,
        uncalibrated_factor: float | None = None,
    ) -> None:
        self._rungs = {
            model.rung: Rung(
                model=model, planner=None if profile is None else planner_of(model, profile, uncalibrated_factor)
            )
            for model in ladder
        }
        self._models = roomiest(ladder)
        self._profile = profile
        self._channel = channel
        self._clock = clock

    def run(self) -> NoReturn:
        """Say ``ready`` and serve; the inbox ends the process when the channel closes."""
        ladder = [rung.model for rung in self._rungs.values()]
        engines = [model.engine for model in ladder]
        first, *others = map(_passes_of, self._models)
        self._channel.send({
            "type": "ready",
            "identity": joint_identity([(model.rung, model.identity) for model in ladder]),
            "placement": placement_of(ladder),
            "bound_ns": None if self._profile is None else self._profile.bound.bound_ns,
            "answer_passes": self._models[0].answer_passes,
            **first,
            "others": others,
        })  # fmt: skip

        def begin() -> None:
            for engine in engines:
                engine.begin()
            bytearray(TIDYING_BYTES)

        def cancel() -> None:
            for engine in engines:
                engine.cancel()

        inbox = Inbox(channel=self._channel, begin=begin, cancel=cancel)
        while True:
            message = inbox.take()
            if message["type"] == "sweep":
                self._sweep(message)
            elif message["type"] == "request":
                self._serve(message)

    def _sweep(self, message: Message) -> None:
        model = next((one for one in self._models if one.rung == message.get("rung")), self._models[0])
        swept = model.sweep(message["sizes"], repeats=message["repeats"], depths=message.get("depths", ()))
        rows = [{"k": times.k, "p": times.p, "elapsed_ns": list(times.elapsed_ns)} for times in swept]
        self._channel.send({"type": "swept", "rows": rows})

    def _serve(self, message: Message) -> None:
        read = read_request(message)
        if read is None:
            return
        request, admit = read
        asked = self._rungs.get(str(message.get("rung")))
        attempt = Attempt(
            rungs=[asked] if asked is not None else list(self._rungs.values()),
            clock=self._clock,
            request=request,
            admit=admit,
            token_by_token=message.get("token_by_token") is True,
            may_draft=message.get("draft") is not False,
        )
        values, finish, detail = None, Finish.COMPLETE, ""
        try:
            values = attempt.answer()
        except CancelledPassError:
            finish, detail = Finish.DEADLINE, "called off"
        except EndedError as end:
            finish, detail = end.finish, str(end)
        except AnswerError as error:
            finish, detail = Finish.INVALID, str(error)
        except EdgeguardError as error:
            finish, detail = Finish.ERROR, str(error)
        except Exception as error:  # noqa: BLE001 - one request's failure, of whatever kind, is that request's alone
            traceback.print_exc()
            finish, detail = Finish.ERROR, f"{type(error).__name__}: {error}"
        self._channel.send(answer_message(attempt.reply(finish=finish, values=values, detail=detail)))


def planner_of(model: LanguageModel, profile: Profile, uncalibrated_factor: float | None = None) -> Planner:
    """Prices the requests of a rung, by the bounds that the profile has for it."""
    automaton, prefix = model.automaton, len(model.prompt.prefix)
    cost = profile.cost_of(model.rung)
    paths = PathPrices(automaton=automaton, price=cost.price_ns)
    scores = {
        (level, drafted): score
        for level in ThermalLevel
        for drafted in (False, True)
        if (score := profile.score_for(level, rung=model.rung, drafted=drafted, beyond=uncalibrated_factor)) is not None
    }
    planner = Planner(cost=cost, scores=scores, paths=paths)
    request_tokens = range(1, model.prompt.longest - prefix + 1)
    planner.prepare(state=automaton.start, request_tokens=request_tokens, cached=prefix)
    return planner


def _start(arguments: argparse.Namespace, *, channel: Channel, clock: Clock) -> Worker:
    def progress(phase: str, done: int, total: int) -> None:
        channel.send({"type": "warming", "phase": phase, "done": done, "total": total})

    config = load_config(arguments.config)
    profile = None if arguments.profile is None else load_profile(arguments.profile)
    ladder = load_ladder(
        config=config, folders=arguments.model, clock=clock, progress=progress, full_head=arguments.full_head
    )
    for model in ladder:
        model.warm_up(progress)
    if profile is not None:
        for model in roomiest(ladder):
            check_speed(model, profile, clock=clock)
    return Worker(
        ladder=ladder,
        profile=profile,
        channel=channel,
        clock=clock,
        uncalibrated_factor=config.risk.uncalibrated_factor,
    )


def _passes_of(model: LanguageModel) -> Message:
    """Which passes a model can be asked to time, by its rung with the most room."""
    return {
        "rung": model.rung,
        "prefix_tokens": len(model.prompt.prefix),
        "capacity_tokens": model.engine.cache.capacity,
        "pass_sizes": model.pass_sizes,
        "fixed_sizes": model.fixed_sizes,
    }


def placement_of(ladder: Sequence[LanguageModel]) -> str:
    """Where the nodes are, in words; by rung where that is not the same for all."""
    places = {model.rung: model.placement for model in ladder}
    if len(set(places.values())) == 1:
        return ladder[0].placement
    return "; ".join(f"{rung}: {place}" for rung, place in places.items())


def check_speed(model: LanguageModel, profile: Profile, *, clock: Clock) -> None:
    """``ProfileError`` when passes take times what the profile says: then something else runs them than was measured.

    The quickest of several, and several times, so that a busy machine is not mistaken for another one.
    """
    for _ in range(SPEED_TRIES):
        (timed,) = model.sweep([model.pass_sizes[0]], repeats=SPEED_REPEATS)
        price_ns = profile.cost_of(model.rung).price_ns(timed.k, timed.p)
        factor = min(timed.elapsed_ns) / price_ns
        if factor <= SPEED_LIMIT:
            return
        clock.sleep_until_ns(clock.now_ns() + SPEED_PAUSE_NS)
    raise ProfileError(
        f"a pass of {timed.k} tokens takes {factor:.1f} times the {ms_from_ns(price_ns):.1f} ms of the profile, on "
        f"{model.placement}: find out what computes here or has changed (edgeguard doctor), or calibrate again"
    )


def main(channel_at: Callable[[int], Channel] = Channel.from_fd) -> None:
    """``channel_at`` opens the channel at a descriptor, in its own way if it has one (a fault that is injected)."""
    parser = argparse.ArgumentParser(prog="python -m edgeguard.engine.worker")
    parser.add_argument("fd", type=int, metavar="FD", help="the descriptor of its end of the channel")
    parser.add_argument("config", type=Path, metavar="CONFIG")
    parser.add_argument("profile", type=Path, metavar="PROFILE", nargs="?")
    parser.add_argument(
        "--model", type=Path, metavar="FOLDER", action="append", required=True,
        help="where model.folder was found; with plans of other models, once for each, the best plan's first",
    )  # fmt: skip
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
