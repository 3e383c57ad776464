"""``edgeguard bench``: the rates of a model on this machine, or of an endpoint; where a request's time goes."""

from __future__ import annotations

import argparse

_HELP = """\
edgeguard bench MODEL measures prompt processing (pp) and decoding (tg) through the engine that the robot will use, in
llama-bench's table and field names, with percentiles. MODEL is a model folder (with a /) or a recipe. --measure also
measures what this machine can do at best, and puts the roofline's estimate beside.

  edgeguard bench smollm2-135m
  edgeguard bench ./my-model -p 64,512 -n 32 -d 0,1024 --threads 4 --measure

edgeguard bench --url URL measures any OpenAI-compatible streaming endpoint, so that what runs today can be compared:
time to first token (the first fragment that is not empty), time per output token (tokens, not fragments), p50 and p95.

  edgeguard bench --url http://127.0.0.1:8080/v1
  edgeguard bench --url https://example.com/v1 --model NAME --key-env API_KEY --prompt @prompt.txt --tokens 20

edgeguard bench --breakdown CONFIG shows where the milliseconds of a robot's request go, with its prompt, cached prefix,
answer schema and drafts, and how far its passes are from what this machine's memory and arithmetic allow.

  edgeguard bench --breakdown robot.toml --requests 100 [--profile profile.json]

What such a request takes at most, and with which confidence, is what 'edgeguard calibrate' measures.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``bench``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "bench",
        help="prompt and decode rates of a model here, or of an endpoint",
        description=_HELP,
    )
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument("folder", nargs="?", metavar="MODEL", help="a model folder (with a /) or a recipe")
    subject.add_argument("--breakdown", metavar="CONFIG", help="where the time of this robot's requests goes")
    subject.add_argument("--url", help="a streaming endpoint's address instead, such as http://127.0.0.1:8080/v1")
    model = parser.add_argument_group("a model's rates")
    model.add_argument("-p", "--n-prompt", type=_sizes, default=[512], metavar="N,…", help="prompts (default: 512)")
    model.add_argument("-n", "--n-gen", type=_sizes, default=[128], metavar="N,…", help="decoding (default: 128)")
    model.add_argument("-d", "--n-depth", type=_sizes, default=[0], metavar="N,…", help="cached before (default: 0)")
    model.add_argument("-r", "--repetitions", type=int, default=5, metavar="N", help="of each (default: 5)")
    model.add_argument("-t", "--threads", type=int, default=0, metavar="N", help="of a pass (default: every core)")
    model.add_argument("--provider", default="cpu", help="the execution provider (default: cpu)")
    model.add_argument("--measure", action="store_true", help="measure this machine too, and compare with the roofline")
    endpoint = parser.add_argument_group("an endpoint's rates")
    endpoint.add_argument("--model", metavar="NAME", help="as the endpoint calls it (default: the first it serves)")
    endpoint.add_argument("--key-env", metavar="NAME", help="the environment variable with the key, if one is needed")
    endpoint.add_argument("--prompt", metavar="TEXT", help="or @FILE (default: a robot's, some 100 tokens)")
    endpoint.add_argument("--tokens", type=int, default=32, metavar="N", help="of an answer at most (default: 32)")
    endpoint.add_argument("--requests", type=int, default=20, metavar="N", help="that count (default: 20)")
    endpoint.add_argument("--warm-up", type=int, default=2, metavar="N", help="before them (default: 2)")
    endpoint.add_argument("--cold", action="store_true", help="let no prompt begin like another, against caches")
    endpoint.add_argument("--body", metavar="FILE", help="JSON fields to add to the request, such as response_format")
    endpoint.add_argument("--timeout", type=float, default=60.0, metavar="S", help="for each answer (default: 60)")
    breakdown = parser.add_argument_group("a breakdown")
    breakdown.add_argument("--profile", metavar="FILE", help="prices: drafts only as far as they pay (default: whole)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Each way to measure is a module of its own, with ``run``."""
    if arguments.url is not None:
        from edgeguard.cli import bench_endpoint

        return bench_endpoint.run(arguments)
    if arguments.breakdown is not None:
        from edgeguard.cli import bench_breakdown

        return bench_breakdown.run(arguments)
    from edgeguard.cli import bench_model

    return bench_model.run(arguments)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers such as 64,512") from None
    if min(sizes) < 0:
        raise argparse.ArgumentTypeError(f"{text!r}: a size is not below 0")
    return sizes
