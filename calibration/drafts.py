"""Time to command with a draft, which is what was answered to the same words the last time, and without, in one run.

    python calibration/drafts.py [CONFIG] [--requests 60] [--profile FILE] [--json]

Two streams of observations: *steady* ones, whose numbers change and whose words do not, so that the command mostly
stays, and *varied* ones, whose words are the field's examples: the same few come again and again. Both ways alternate
in random order at the robot's period, in one worker; each gets every observation, none of which it finds cached. With a
profile a draft is run as far as it pays, without one always whole. Time runs from handing the observation over to the
parsed answer in our hands. Ratios are of medians, with a bootstrap interval.
``same_answers`` counts where both ways said the same: all of them, or it is a defect.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

from edgeguard.bench.asking import Asked, ask
from edgeguard.bench.bootstrap import ratio_interval
from edgeguard.bench.observations import draw_fields, steady_fields
from edgeguard.bench.percentile import percentile
from edgeguard.bench.subject import model_folder
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.config import Config, load_config
from edgeguard.model.progress import silent
from edgeguard.runtime.worker_command import worker_argv
from edgeguard.types import Value

SEED = 1
WARM_UP = 6
WAYS = ("drafted", "plain")


def measure(config: Config, *, requests: int, profile: Path | None) -> dict[str, Any]:
    """Both streams, one after the other: a draft is made of the answer just before."""
    clock = SystemClock()
    argv = worker_argv(config.file.absolute(), profile, models=[model_folder(config)])
    streams = {"steady": steady_fields(config, seed=2), "varied": draw_fields(config, seed=3)}
    with WorkerClient.start(argv=argv, clock=clock) as client:
        client.wait_ready(progress=silent)
        return {
            name: _stream(client, config, list(islice(fields, requests)), clock=clock)
            for name, fields in streams.items()
        }


def _stream(
    client: WorkerClient, config: Config, questions: Sequence[Mapping[str, Value]], *, clock: SystemClock
) -> dict[str, Any]:
    count, draw, due_ns = len(questions), random.Random(SEED), clock.now_ns()
    replies: dict[str, dict[int, Asked]] = {way: {} for way in WAYS}
    for number in range(-WARM_UP, count):
        for way in draw.sample(WAYS, k=len(WAYS)):
            # A question comes back long after it was asked in the other way, so nobody finds it cached.
            asked = (number + WAYS.index(way) * count // 2) % count
            clock.sleep_until_ns(due_ns)
            due_ns = max(due_ns, clock.now_ns()) + config.timing.period_ns
            reply = ask(client, questions[asked], clock=clock, may_draft=way == "drafted")
            if number >= 0:
                replies[way][asked] = reply
    times = {way: [replies[way][at].elapsed_ns / NS_PER_MS for at in range(count)] for way in WAYS}
    answers = {way: [replies[way][at].answer for at in range(count)] for way in WAYS}
    drafted = sum(answer.drafted_tokens for answer in answers["drafted"])
    accepted = sum(answer.accepted_tokens for answer in answers["drafted"])
    return {
        "requests": count,
        **{
            way: {
                "p50_ms": round(statistics.median(times[way]), 2),
                "p99_ms": round(percentile(times[way], 0.99), 2),
                "passes": round(statistics.mean(len(answer.passes) for answer in answers[way]), 2),
            }
            for way in WAYS
        },
        "drafted_tokens": drafted,
        "accepted_tokens": accepted,
        "same_answers": sum(
            (one.values, one.confidence) == (plain.values, plain.confidence)
            for one, plain in zip(answers["drafted"], answers["plain"], strict=True)
        ),
        "ratio_drafted_plain": {
            "p50": round(statistics.median(times["drafted"]) / statistics.median(times["plain"]), 3),
            "interval_95": [round(end, 3) for end in ratio_interval(times["drafted"], times["plain"], draw=draw)],
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    demo = Path(str(resources.files("edgeguard.demo").joinpath("demo.toml")))
    parser.add_argument("config", nargs="?", type=Path, default=demo, help="default: the demo's")
    parser.add_argument("--requests", type=int, default=60, help="of each way and stream (default: 60)")
    parser.add_argument("--profile", type=Path, help="prices: drafts as far as they pay (default: always whole)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    profile = None if arguments.profile is None else arguments.profile.absolute()
    figures = measure(load_config(arguments.config), requests=arguments.requests, profile=profile)
    if arguments.json:
        print(json.dumps(figures))
        return 0
    for stream, found in figures.items():
        print(stream)
        for name, figure in found.items():
            print(f"{name:>22}  {figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
