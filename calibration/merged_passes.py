"""Time to command with forced tokens merged into passes, against token by token, in one run on this machine.

    python calibration/merged_passes.py [CONFIG] [--requests 60] [--json]

Both ways have the same worker, prefix cache, observations and answer; they alternate in random order at the robot's
period, each on an observation that neither has cached. Token by token is what a plain runtime does: the observation in
one pass, then a pass for every token of the answer, with the mask on the whole vocabulary. Time runs from handing the
observation over to the parsed answer in our hands. The ratio is of medians, with a bootstrap interval.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Sequence
from importlib import resources
from itertools import islice
from pathlib import Path

from edgeguard.bench.observations import draw_fields
from edgeguard.bench.subject import model_subject
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import NS_PER_S, SystemClock, ms_from_ns
from edgeguard.config import load_config
from edgeguard.model.progress import silent
from edgeguard.types import Finish, Observation, Request

SEED = 1
WARM_UP = 6
LIMIT_NS = 30 * NS_PER_S


def measure(config_file: Path, *, requests: int) -> dict[str, object]:
    """Milliseconds and passes of both ways, over so many requests each."""
    config, clock, draw = load_config(config_file), SystemClock(), random.Random(SEED)
    observations = draw_fields(config, seed=SEED)
    times: dict[str, list[float]] = {"merged": [], "token_by_token": []}
    passes: dict[str, list[int]] = {"merged": [], "token_by_token": []}
    argv = model_subject(config).command(config.file, None)
    with WorkerClient.start(argv=argv, clock=clock) as worker:
        ready = worker.wait_ready(progress=silent)
        due_ns = clock.now_ns()
        for number in range(requests + WARM_UP):
            order = draw.sample(list(times), k=2)
            for way, fields in zip(order, islice(observations, 2), strict=True):
                clock.sleep_until_ns(due_ns)
                due_ns = max(due_ns, clock.now_ns()) + config.timing.period_ns
                now_ns = clock.now_ns()
                request = Request(
                    request_id=2 * number + (way == "merged") + 1,
                    epoch=1,
                    observation=Observation(fields=fields, captured_ns=now_ns),
                    answer_by_ns=now_ns + LIMIT_NS,
                )
                reply = worker.ask(request, admit=False, limit_ns=LIMIT_NS, token_by_token=way == "token_by_token")
                if reply.answer.finish is not Finish.COMPLETE:
                    raise SystemExit(
                        f"the worker ended a request as {reply.answer.finish.value}: {reply.answer.detail}"
                    )
                if number >= WARM_UP:
                    times[way].append(ms_from_ns(reply.received_ns - now_ns))
                    passes[way].append(len(reply.answer.passes))
    low, high = interval(times["merged"], times["token_by_token"], draw=draw)
    return {
        "requests": requests,
        "prefix_tokens": ready.prefix_tokens,
        **{
            way: {
                "p50_ms": statistics.median(times[way]),
                "max_ms": max(times[way]),
                "passes": statistics.median(passes[way]),
            }
            for way in times
        },
        "ratio": statistics.median(times["merged"]) / statistics.median(times["token_by_token"]),
        "ratio_95": [low, high],
    }


def interval(ours: Sequence[float], theirs: Sequence[float], *, draw: random.Random) -> tuple[float, float]:
    """The central 95 % of the ratio of medians over 1,000 resamplings."""
    ratios = sorted(
        statistics.median(draw.choices(ours, k=len(ours))) / statistics.median(draw.choices(theirs, k=len(theirs)))
        for _ in range(1_000)
    )
    return ratios[25], ratios[974]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    demo = Path(str(resources.files("edgeguard.demo").joinpath("demo.toml")))
    parser.add_argument("config", nargs="?", type=Path, default=demo, help="default: the demo's")
    parser.add_argument("--requests", type=int, default=60, help="of each way (default: 60)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.config, requests=arguments.requests)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:>16}  {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
