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
else is free. A worker of its own runs it half a period behind every request, as many tokens as that request ran and
kept, so that both see the same machine, and both have rested for a period; and once more at once, which says what the
rest costs: caches that others have filled since, a clock that has gone down. Milliseconds. Raises what starting a
worker raises.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from edgeguard.bench.asking import PATIENCE_NS, Asked, ask
from edgeguard.bench.memory import WorkerMemory, worker_memory
from edgeguard.bench.observations import draw_fields, steady_fields
from edgeguard.bench.percentile import percentile
from edgeguard.bench.speed.carry_share import carry_share
from edgeguard.bench.speed.limits import Limits, measure_limits
from edgeguard.bench.speed.wake_ups import WakeUps, measure_wake_ups
from edgeguard.bench.subject import model_folders
from edgeguard.bench.worker_client import Ready, WorkerClient
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_MS, Clock
from edgeguard.config import Config
from edgeguard.engine.decoder import drafting
from edgeguard.engine.ladder import read_ladder
from edgeguard.engine.language_model import LanguageModel, load_language_model
from edgeguard.model.progress import Progress, silent
from edgeguard.runtime.worker_command import worker_argv
from edgeguard.types import Value

STREAMS = ("steady", "varied")
PARTS = ("hand-over", "tokenise", "bind", "run", "pick", "automaton, draft and plan", "parse")
WARM_UP = 6
SEED = 1
REPEATS = 40
LARGE_PASS = 128
CURVE_TO = 64
"""Passes of robots are shorter, and the curve of all sizes takes as long as 1,500 passes of a token."""

CURVE_ROUNDS, CURVE_REPEATS = 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kind of observations. ``parts_ms`` and ``total_ms`` are medians, ``accepted`` a share of drafted tokens, and
    ``over_floor`` the median of how many times its own floor a request took, whatever the machine did meanwhile."""

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
    over_floor: float

    @property
    def beside_ms(self) -> float:
        """Everything that is not a pass."""
        return self.total_ms - self.parts_ms["run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """``passes_ms`` is what a pass behind the prefix takes, by its tokens; ``beside`` which share of it goes to each of
    the things beside 4-bit products (``carry_share``), empty for a model without."""

    streams: Mapping[str, Stream]
    limits: Limits
    wake_ups: WakeUps
    passes_ms: Mapping[int, float]
    beside: Mapping[str, Mapping[int, float]]
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
        with WorkerClient.start(argv=argv, clock=clock) as floor:
            longest = floor.wait_ready(progress=progress).pass_sizes[-1]
            timed = _time(client, floor, config, longest=longest, requests=requests, clock=clock, progress=progress)
        memory = worker_memory(client.worker_pid, every_model)
        streams = {name: _stream(timed[name], inside) for name in STREAMS}
        sizes = ready.pass_sizes[0], min(LARGE_PASS, ready.pass_sizes[-1])
        swept = client.sweep(sizes=sizes, repeats=REPEATS, limit_ns=PATIENCE_NS)
        curve_ms = _curve_ms(client, ready, progress=progress)
    passes_ms = {row.k: row.median_ns / NS_PER_MS for row in swept}
    cached, rows = len(model.prompt.prefix), model.engine.head.rows
    limits = measure_limits(folder, passes_ms=passes_ms, cached=cached, rows=rows, clock=clock, progress=progress)
    rest_ns, read_bytes = config.timing.period_ns, round(limits.bytes_moved)
    wake_ups = measure_wake_ups(rounds=requests, rest_ns=rest_ns, read_bytes=read_bytes, clock=clock, progress=progress)
    beside = carry_share(
        config.by_model[0],
        model,
        every_model[0],
        sizes=sorted({*sizes, *(stream.pass_tokens for stream in streams.values())}),
        repeats=REPEATS,
        clock=clock,
        progress=progress,
    )
    return Breakdown(
        streams=streams, limits=limits, wake_ups=wake_ups, passes_ms=curve_ms, beside=beside, memory=memory
    )


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """A request, and behind it one pass of all that it ran and kept: after a rest, and once more at once."""

    asked: Asked
    floor_ns: int
    unrested_ns: int


def _time(
    client: WorkerClient,
    floor: WorkerClient,
    config: Config,
    *,
    longest: int,
    requests: int,
    clock: Clock,
    progress: Progress,
) -> dict[str, list[_Timed]]:
    """Of each stream so many; blocks of a stream in random order."""
    sources = {"steady": steady_fields(config, seed=2), "varied": draw_fields(config, seed=3)}
    timed: dict[str, list[_Timed]] = {name: [] for name in STREAMS}
    blocks = [name for name in STREAMS for _ in range(2)]
    random.Random(SEED).shuffle(blocks)
    half_ns, block = config.timing.period_ns // 2, WARM_UP + requests // 2
    due_ns = clock.now_ns()
    for done in range(len(blocks) * block):
        progress("asking", done, len(blocks) * block)
        name = blocks[done // block]
        clock.sleep_until_ns(due_ns)
        asked = ask(client, next(sources[name]), clock=clock)
        due_ns = max(due_ns + half_ns, clock.now_ns())
        clock.sleep_until_ns(due_ns)
        size = min(asked.answer.kept_tokens, longest)
        (row,) = floor.sweep(sizes=[size], repeats=2, limit_ns=PATIENCE_NS)
        due_ns = max(due_ns + half_ns, clock.now_ns())
        if done % block >= WARM_UP:
            timed[name].append(_Timed(asked=asked, floor_ns=row.elapsed_ns[0], unrested_ns=row.elapsed_ns[1]))
    progress("asking", len(blocks) * block, len(blocks) * block)
    return timed


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


def _stream(timed: Sequence[_Timed], inside: Mapping[str, float]) -> Stream:
    rows = [_parts(one.asked, inside) for one in timed]
    totals = [one.asked.elapsed_ns / NS_PER_MS for one in timed]
    answers = [one.asked.answer for one in timed]
    drafted = sum(one.drafted_tokens for one in answers)
    return Stream(
        requests=len(timed),
        parts_ms={name: median([row[name] for row in rows]) for name in PARTS},
        total_ms=median(totals),
        total_p99_ms=percentile(totals, 0.99),
        handover_p99_ms=percentile([row["hand-over"] for row in rows], 0.99),
        passes=sum(len(one.passes) for one in answers) / len(answers),
        pass_tokens=round(median([one.kept_tokens for one in answers])),
        one_pass=sum(len(one.passes) == 1 for one in answers) / len(answers),
        accepted=sum(one.accepted_tokens for one in answers) / drafted if drafted else 0.0,
        floor_ms=median([one.floor_ns for one in timed]) / NS_PER_MS,
        floor_unrested_ms=median([one.unrested_ns for one in timed]) / NS_PER_MS,
        over_floor=median([one.asked.elapsed_ns / one.floor_ns for one in timed]),
    )


def _parts(asked: Asked, inside: Mapping[str, float]) -> dict[str, float]:
    answer = asked.answer
    work_ns = answer.finished_ns - answer.started_ns
    run_ns = sum(one.elapsed_ns for one in answer.passes)
    passes = len(answer.passes)
    bind, pick = inside["bind"] * passes, inside["pick"] * passes
    between_ns = work_ns - answer.tokenise_ns - run_ns - answer.parse_ns
    return {
        "hand-over": (asked.elapsed_ns - work_ns) / NS_PER_MS,
        "tokenise": answer.tokenise_ns / NS_PER_MS,
        "bind": bind,
        "run": run_ns / NS_PER_MS,
        "pick": pick,
        "automaton, draft and plan": max(0.0, between_ns / NS_PER_MS - bind - pick),
        "parse": answer.parse_ns / NS_PER_MS,
    }
