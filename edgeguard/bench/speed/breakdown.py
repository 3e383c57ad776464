"""Where the milliseconds of one request go, and how far its passes are from what this machine can do.

A real worker is asked at the robot's period, two streams of observations in random order: *steady* ones, whose numbers
change and whose words do not, so that the command mostly stays, and *varied* ones. Time runs from handing an
observation over to the parsed answer in our hands. Of it the worker states the tokenising, the passes and the parsing;
binding and picking are timed in this process on the same model; what is left inside is automaton, draft and plan, and
what is left outside is the hand-over. The medians of parts need not add up to the median of the whole. Beside the
hand-over stands the least that one can cost here (``wake_ups``).

Of its passes it is also said whether one of some size is dearer than it need be, and what of them the exact 4-bit
weights take; and of the worker, which has answered by then, how much memory it has.

The *floor* is one measured pass of the observation and the whole draft: what an unchanged command costs if everything
else is free. It is timed as a request's pass is, after a rest of a period; and back to back, which says what the rest
costs: caches that others have filled since, a clock that has gone down. Milliseconds. Raises what starting a worker
raises.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from edgeguard.bench.memory import WorkerMemory, worker_memory
from edgeguard.bench.observations import draw_fields
from edgeguard.bench.percentile import percentile
from edgeguard.bench.speed.carry_share import carry_share
from edgeguard.bench.speed.limits import Limits, measure_limits
from edgeguard.bench.speed.wake_ups import WakeUps, measure_wake_ups
from edgeguard.bench.subject import model_folders
from edgeguard.bench.worker_client import Ready, Reply, WorkerClient
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_MS, NS_PER_S, Clock
from edgeguard.config import Config
from edgeguard.engine.decoder import drafting
from edgeguard.engine.ladder import read_ladder
from edgeguard.engine.language_model import LanguageModel, load_language_model
from edgeguard.errors import WorkerError
from edgeguard.model.progress import Progress, silent
from edgeguard.runtime.worker_command import worker_argv
from edgeguard.types import Finish, Observation, Request, Value

STREAMS = ("steady", "varied")
PARTS = ("hand-over", "tokenise", "bind", "run", "pick", "automaton, draft and plan", "parse")
WARM_UP = 6
PATIENCE_NS = 30 * NS_PER_S
SEED = 1
REPEATS = 40
LARGE_PASS = 128
CURVE_TO = 64
"""Passes of robots are shorter, and the curve of all sizes takes as long as 1,500 passes of a token."""

CURVE_ROUNDS, CURVE_REPEATS = 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kind of observations. ``parts_ms`` and ``total_ms`` are medians, ``accepted`` a share of drafted tokens."""

    requests: int
    parts_ms: Mapping[str, float]
    total_ms: float
    total_p99_ms: float
    handover_p99_ms: float
    passes: float
    pass_tokens: int
    one_pass: float
    accepted: float
    floor_ms: float
    floor_unrested_ms: float

    @property
    def over_floor(self) -> float:
        return self.total_ms / self.floor_ms

    @property
    def beside_ms(self) -> float:
        """Everything that is not a pass."""
        return self.total_ms - self.parts_ms["run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """``passes_ms`` is what a pass behind the prefix takes, by its tokens; ``carry`` which share of it the exact 4-bit
    weights are, empty for a model without."""

    streams: Mapping[str, Stream]
    limits: Limits
    wake_ups: WakeUps
    passes_ms: Mapping[int, float]
    carry: Mapping[int, float]
    memory: WorkerMemory


def break_down(
    config: Config, *, clock: Clock, requests: int = 100, profile: Path | None = None, progress: Progress = silent
) -> Breakdown:
    """Ask so many requests of each stream. With a ``profile`` a draft is run as far as it pays, else always whole."""
    folder, *others = model_folders(config, progress=progress)
    model = load_language_model(config=config.by_model[0], folder=folder, clock=clock, progress=silent)
    model.warm_up(silent)
    every_model = read_ladder(config=config, folders=[folder, *others])
    inside = _inside(model, list(islice(draw_fields(config, seed=SEED), 20)), clock=clock)
    argv = worker_argv(config.file.absolute(), profile, models=[folder, *others])
    with WorkerClient.start(argv=argv, clock=clock) as client:
        ready = client.wait_ready(progress=progress)
        replies = _ask(client, config, requests=requests, clock=clock, progress=progress)
        memory = worker_memory(client.worker_pid, every_model)

        def timed_ms(size: int) -> float:
            (row,) = client.sweep(sizes=[size], repeats=REPEATS, limit_ns=PATIENCE_NS)
            return row.median_ns / NS_PER_MS

        def rested_ms(size: int) -> float:
            times_ns = list[int]()
            for done in range(REPEATS):
                progress("timing passes", done, REPEATS)
                clock.sleep_until_ns(clock.now_ns() + config.timing.period_ns)
                (row,) = client.sweep(sizes=[size], repeats=1, limit_ns=PATIENCE_NS)
                times_ns += row.elapsed_ns
            return median(times_ns) / NS_PER_MS

        streams = {name: _stream(replies[name], inside, rested_ms, timed_ms) for name in STREAMS}
        sizes = ready.pass_sizes[0], min(LARGE_PASS, ready.pass_sizes[-1])
        passes_ms = {size: timed_ms(size) for size in sizes}
        curve_ms = _curve_ms(client, ready, progress=progress)
    cached, rows = len(model.prompt.prefix), model.engine.head.rows
    limits = measure_limits(folder, passes_ms=passes_ms, cached=cached, rows=rows, clock=clock, progress=progress)
    rest_ns, read_bytes = config.timing.period_ns, round(limits.bytes_moved)
    wake_ups = measure_wake_ups(rounds=requests, rest_ns=rest_ns, read_bytes=read_bytes, clock=clock, progress=progress)
    carry = carry_share(
        config.by_model[0],
        model,
        every_model[0],
        sizes=sorted({*sizes, *(stream.pass_tokens for stream in streams.values())}),
        repeats=REPEATS,
        clock=clock,
        progress=progress,
    )
    return Breakdown(streams=streams, limits=limits, wake_ups=wake_ups, passes_ms=curve_ms, carry=carry, memory=memory)


def _curve_ms(client: WorkerClient, ready: Ready, *, progress: Progress) -> dict[int, float]:
    """Every size in random order, some rounds of it, so that a machine that drifts bends no part of the curve."""
    shortest, longest = ready.pass_sizes[0], ready.pass_sizes[-1]
    sizes = ready.pass_sizes if ready.fixed_sizes else range(shortest, min(longest, CURVE_TO) + 1)
    draw, times_ns = random.Random(SEED), {size: list[int]() for size in sizes}
    order = [size for _ in range(CURVE_ROUNDS) for size in draw.sample(list(sizes), len(sizes))]
    for done, size in enumerate(order):
        progress("timing every size", done, len(order))
        (row,) = client.sweep(sizes=[size], repeats=CURVE_REPEATS, limit_ns=PATIENCE_NS)
        times_ns[size] += row.elapsed_ns
    progress("timing every size", len(order), len(order))
    return {size: median(found) / NS_PER_MS for size, found in times_ns.items()}


def steady_fields(config: Config, *, seed: int) -> Iterator[dict[str, Value]]:
    """Observations whose numbers change and whose words and flags do not."""
    first, *_ = islice(draw_fields(config, seed=SEED), 1)
    numbers = {spec.name for spec in config.fields if spec.kind == "number"}
    for fields in draw_fields(config, seed=seed):
        yield {name: value if name in numbers else first[name] for name, value in fields.items()}


def _ask(
    client: WorkerClient, config: Config, *, requests: int, clock: Clock, progress: Progress
) -> dict[str, list[tuple[int, Reply]]]:
    """Of each stream (nanoseconds from handing over to having, the reply); blocks of a stream in random order."""
    sources = {"steady": steady_fields(config, seed=2), "varied": draw_fields(config, seed=3)}
    replies: dict[str, list[tuple[int, Reply]]] = {name: [] for name in STREAMS}
    blocks = [name for name in STREAMS for _ in range(2)]
    random.Random(SEED).shuffle(blocks)
    due_ns, number, total = clock.now_ns(), 0, len(blocks) * (WARM_UP + requests // 2)
    for name in blocks:
        for at in range(WARM_UP + requests // 2):
            progress("asking", number, total)
            clock.sleep_until_ns(due_ns)
            began_ns = clock.now_ns()
            due_ns = max(due_ns + config.timing.period_ns, began_ns)
            number += 1
            request = Request(
                request_id=number,
                epoch=0,
                observation=Observation(fields=next(sources[name]), captured_ns=began_ns),
                answer_by_ns=began_ns + PATIENCE_NS,
            )
            reply = client.ask(request, admit=False, limit_ns=PATIENCE_NS)
            if reply.answer.finish is not Finish.COMPLETE:
                raise WorkerError(f"a request ended as {reply.answer.finish.value}: {reply.answer.detail}")
            if at >= WARM_UP:
                replies[name].append((reply.received_ns - began_ns, reply))
    progress("asking", total, total)
    return replies


def _inside(model: LanguageModel, observations: Sequence[Mapping[str, Value]], *, clock: Clock) -> dict[str, float]:
    """Milliseconds of binding per pass, and of picking per choice, in this process."""
    engine, automaton = model.engine, model.automaton
    bind_ns, pick_ns = list[float](), list[float]()
    for fields in observations:
        engine.begin()
        if model.decoder.decode(model.prompt.request(fields), guide=drafting) is None or not engine.passes:
            continue
        bind_ns.append(engine.binding_ns / len(engine.passes))
        reaches = model.decoder.draft(automaton.start).reaches
        began_ns = clock.now_ns()
        for reach in reaches:
            model.decoder.pick(reach.state, engine.earlier(0))
        pick_ns.append((clock.now_ns() - began_ns) / len(reaches))
    return {
        "bind": median(bind_ns) / NS_PER_MS if bind_ns else 0.0,
        "pick": median(pick_ns) / NS_PER_MS if pick_ns else 0.0,
    }


def _stream(
    replies: Sequence[tuple[int, Reply]],
    inside: Mapping[str, float],
    rested_ms: Callable[[int], float],
    timed_ms: Callable[[int], float],
) -> Stream:
    rows = [_parts(elapsed_ns, reply, inside) for elapsed_ns, reply in replies]
    totals = [elapsed_ns / NS_PER_MS for elapsed_ns, _ in replies]
    answers = [reply.answer for _, reply in replies]
    whole = [one.passes[0].k for one in answers if len(one.passes) == 1] or [one.passes[0].k for one in answers]
    size = round(median(whole))
    drafted = sum(one.drafted_tokens for one in answers)
    return Stream(
        requests=len(replies),
        parts_ms={name: median([row[name] for row in rows]) for name in PARTS},
        total_ms=median(totals),
        total_p99_ms=percentile(totals, 0.99),
        handover_p99_ms=percentile([row["hand-over"] for row in rows], 0.99),
        passes=sum(len(one.passes) for one in answers) / len(answers),
        pass_tokens=size,
        one_pass=sum(len(one.passes) == 1 for one in answers) / len(answers),
        accepted=sum(one.accepted_tokens for one in answers) / drafted if drafted else 0.0,
        floor_ms=rested_ms(size),
        floor_unrested_ms=timed_ms(size),
    )


def _parts(elapsed_ns: int, reply: Reply, inside: Mapping[str, float]) -> dict[str, float]:
    answer = reply.answer
    work_ns = answer.finished_ns - answer.started_ns
    run_ns = sum(one.elapsed_ns for one in answer.passes)
    passes = len(answer.passes)
    bind, pick = inside["bind"] * passes, inside["pick"] * passes
    between_ns = work_ns - answer.tokenise_ns - run_ns - answer.parse_ns
    return {
        "hand-over": (elapsed_ns - work_ns) / NS_PER_MS,
        "tokenise": answer.tokenise_ns / NS_PER_MS,
        "bind": bind,
        "run": run_ns / NS_PER_MS,
        "pick": pick,
        "automaton, draft and plan": max(0.0, between_ns / NS_PER_MS - bind - pick),
        "parse": answer.parse_ns / NS_PER_MS,
    }
