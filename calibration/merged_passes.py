"""Time to command: token by token, with forced tokens merged into passes, and with the head cut; in one run.

    python calibration/merged_passes.py [CONFIG] [--requests 60] [--sweep 40] [--json]

Three ways alternate in random order at the robot's period, each on the same observations, which none has cached:

- ``token_by_token``: what a plain runtime does, with the prefix cached: the observation in one pass, then a pass for
  every token of the answer, with the mask on the whole vocabulary;
- ``merged``: a pass per choice, with the same whole head;
- ``cut``: a pass per choice, with the head cut to the tokens that can be chosen. This is what the robot runs.

The first two share a worker, the third has its own; an idle one sleeps. Time runs from handing the observation over to
the parsed answer in our hands. Ratios are of medians, with a bootstrap interval. Then passes of several sizes are timed
with both heads by turns, and the memory and the start of both workers are compared. ``same_answers`` counts where the
other ways answered as the cut head did: ``merged`` always; ``token_by_token`` where its passes of one token allow.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import resources
from itertools import islice
from pathlib import Path

from edgeguard.bench.asking import PATIENCE_NS, Asked, ask
from edgeguard.bench.bootstrap import ratio_interval
from edgeguard.bench.observations import draw_fields
from edgeguard.bench.subject import model_folder
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import NS_PER_S, SystemClock, ms_from_ns
from edgeguard.config import Config, load_config
from edgeguard.model.progress import silent
from edgeguard.runtime.worker_command import worker_argv
from edgeguard.types import Value

SEED = 1
WARM_UP = 6
SIZES = (2, 4, 8, 16, 32)
WAYS = ("token_by_token", "merged", "cut")


class Heads:
    """Both workers, and what they cost to start."""

    def __init__(self, config: Config, *, stack: ExitStack) -> None:
        self.clock = SystemClock()
        self.workers: dict[str, WorkerClient] = {}
        self.facts: dict[str, dict[str, object]] = {}
        folder = model_folder(config)
        for name in ("full", "cut"):
            argv = worker_argv(config.file, None, models=[folder], full_head=name == "full")
            began_ns = self.clock.now_ns()
            worker = stack.enter_context(WorkerClient.start(argv=argv, clock=self.clock))
            ready = worker.wait_ready(progress=silent)
            self.workers[name] = worker
            self.facts[name] = {
                "head": ready.identity["head"],
                "start_s": round((self.clock.now_ns() - began_ns) / NS_PER_S, 2),
            }

    def ask(self, way: str, fields: Mapping[str, Value]) -> Asked:
        worker = self.workers["cut" if way == "cut" else "full"]
        return ask(worker, fields, clock=self.clock, token_by_token=way == "token_by_token")

    def memory(self) -> None:
        """Add the resident memory of each worker, now and at its peak, to the facts."""
        for name, worker in self.workers.items():
            status = Path(f"/proc/{worker.worker_pid}/status").read_text()
            for figure, key in (("rss_mb", "VmRSS"), ("peak_mb", "VmHWM")):
                self.facts[name][figure] = int(re.search(rf"{key}:\s+(\d+)", status)[1]) // 1024


def measure(config_file: Path, *, requests: int, repeats: int) -> dict[str, object]:
    """Milliseconds and passes of each way over so many requests, and of passes over so many of each size."""
    config, draw = load_config(config_file), random.Random(SEED)
    found: dict[str, dict[int, Asked]] = {way: {} for way in WAYS}
    questions = list(islice(draw_fields(config, seed=SEED), requests))
    with ExitStack() as stack:
        heads = Heads(config, stack=stack)
        clock, due_ns = heads.clock, heads.clock.now_ns()
        for number in range(-WARM_UP, requests):
            for way in draw.sample(WAYS, k=len(WAYS)):
                # A question comes back long after it was asked in another way, so nobody finds it cached.
                asked = (number + WAYS.index(way) * requests // len(WAYS)) % requests
                clock.sleep_until_ns(due_ns)
                due_ns = max(due_ns, clock.now_ns()) + config.timing.period_ns
                reply = heads.ask(way, questions[asked])
                if number >= 0:
                    found[way][asked] = reply
        sweep = _sweep(heads, repeats=repeats)
        heads.memory()
    answers = {way: [found[way][at].answer for at in range(requests)] for way in WAYS}
    times = {way: [ms_from_ns(found[way][at].elapsed_ns) for at in range(requests)] for way in WAYS}
    medians = {way: statistics.median(times[way]) for way in WAYS}
    return {
        "requests": requests,
        **{
            way: {
                "p50_ms": medians[way],
                "max_ms": max(times[way]),
                "passes": statistics.median(len(answer.passes) for answer in answers[way]),
            }
            for way in WAYS
        },
        "same_answers": {
            way: sum(one.values == cut.values for one, cut in zip(answers[way], answers["cut"], strict=True))
            for way in WAYS[:2]
        },
        **{
            f"ratio_{ours}_{theirs}": {
                "p50": medians[ours] / medians[theirs],
                "interval_95": ratio_interval(times[ours], times[theirs], draw=draw),
            }
            for ours, theirs in (("merged", "token_by_token"), ("cut", "merged"), ("cut", "token_by_token"))
        },
        "pass_ms": sweep,
        "workers": heads.facts,
    }


def _sweep(heads: Heads, *, repeats: int) -> dict[str, dict[str, float]]:
    """Median milliseconds of a pass by its size, both heads by turns, five at a time."""
    elapsed: dict[int, dict[str, list[int]]] = {size: {"full": [], "cut": []} for size in SIZES}
    for _ in range(max(1, repeats // 5)):
        for size in SIZES:
            for name, worker in heads.workers.items():
                (row,) = worker.sweep(sizes=[size], repeats=6, limit_ns=PATIENCE_NS)
                elapsed[size][name] += row.elapsed_ns[1:]
    rows = {}
    for size, by_head in elapsed.items():
        full, cut = (statistics.median(by_head[name]) / 1e6 for name in ("full", "cut"))
        rows[str(size)] = {"full": round(full, 2), "cut": round(cut, 2), "ratio": round(cut / full, 3)}
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    demo = Path(str(resources.files("edgeguard.demo").joinpath("demo.toml")))
    parser.add_argument("config", nargs="?", type=Path, default=demo, help="default: the demo's")
    parser.add_argument("--requests", type=int, default=60, help="of each way (default: 60)")
    parser.add_argument("--sweep", type=int, default=40, help="passes of each size and head (default: 40)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.config, requests=arguments.requests, repeats=arguments.sweep)
    if arguments.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:>26}  {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
