"""``edgeguard bench --url``: an endpoint's time to first token and time per output token."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.cli.positive import require_positive
from edgeguard.cli.progress import progress_bars
from edgeguard.cli.quantity import digits, seconds
from edgeguard.clock import NS_PER_S, SystemClock, ms_from_ns
from edgeguard.errors import ConfigError

if TYPE_CHECKING:
    from edgeguard.bench.endpoint.endpoint import Endpoint
    from edgeguard.bench.endpoint.rates import EndpointRates

PROMPT = """\
You drive a small robot in a warehouse. You are given what it senses, and answer with one JSON object and nothing else:
{"move": "forward" | "left" | "right" | "stop", "speed": 0.0 to 1.0 in steps of 0.1}. Drive towards the goal, keep at
least half a metre from everything, and stop when you are told to.
Sensed: 1.4 m free ahead, 0.9 m to the left, 2.2 m to the right. The goal is 3 m ahead, a little to the right. Speed
0.3 m/s. The operator says: "easy, there are people around"."""


def run(arguments: argparse.Namespace) -> int:
    from edgeguard.bench.endpoint.endpoint import Endpoint
    from edgeguard.bench.endpoint.rates import measure_endpoint

    require_positive(arguments, "tokens", "requests", "timeout")
    if arguments.warm_up < 0:
        raise ConfigError(f"--warm-up {arguments.warm_up}: must not be below 0")
    if not arguments.url.startswith(("http://", "https://")):
        raise ConfigError(f"--url {arguments.url!r}: begins with neither http:// nor https://")
    prompt, extra = _prompt(arguments.prompt), _extra(arguments.body)
    with (
        Endpoint(
            arguments.url,
            clock=SystemClock(),
            model=arguments.model,
            key=_key(arguments.key_env),
            timeout_s=arguments.timeout,
        ) as endpoint,
        progress_bars() as progress,
    ):
        rates = measure_endpoint(
            endpoint,
            prompt=prompt,
            max_tokens=arguments.tokens,
            requests=arguments.requests,
            warm_up=arguments.warm_up,
            cold=arguments.cold,
            extra=extra,
            progress=progress,
        )
    if arguments.json:
        print(json.dumps(_summary(endpoint, rates), indent=2))
    else:
        _show(endpoint, rates, arguments)
    return 0


def _prompt(given: str | None) -> str:
    if given is None or not given.startswith("@"):
        return given or PROMPT
    return _read(given[1:], option="--prompt")


def _extra(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        fields = json.loads(_read(file, option="--body"))
    except ValueError as error:
        raise ConfigError(f"--body {file}: is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise ConfigError(f"--body {file}: is not a JSON object")
    return fields


def _read(file: str, *, option: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{option} {file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{option} {file}: is not UTF-8") from error


def _key(name: str | None) -> str | None:
    if name is not None and not os.environ.get(name):
        raise ConfigError(f"--key-env {name}: there is no such environment variable, or it is empty")
    return None if name is None else os.environ[name]


def _summary(endpoint: Endpoint, rates: EndpointRates) -> dict[str, Any]:
    return {
        "url": endpoint.url,
        "model": endpoint.model,
        "requests": len(rates.completions),
        "mean_tokens": rates.mean_tokens,
        "tokens_stated": rates.stated,
        "tokens_per_s": rates.tokens_per_s,
        "ms": {
            name.replace(" ", "_"): {share: ms_from_ns(round(value)) for share, value in row.items()}
            for name, row in rates.figures_ns().items()
        },
        "samples": [
            {
                "first_token_ms": ms_from_ns(one.first_token_ns),
                "total_ms": ms_from_ns(one.total_ns),
                "tokens": one.tokens,
            }
            for one in rates.completions
        ],
    }


def _show(endpoint: Endpoint, rates: EndpointRates, arguments: argparse.Namespace) -> None:
    from rich.table import Table

    from edgeguard.cli.console import Console

    same = "no prompt begins like another" if arguments.cold else "the same prompt each time, so that a cache counts"
    counted = "as the endpoint states" if rates.stated else "about: it states none, so fragments were counted"
    given = Table(show_header=False, box=None, pad_edge=False)
    given.add_column(style="bold", no_wrap=True)
    given.add_row("endpoint", endpoint.url)
    given.add_row("model", endpoint.model)
    given.add_row("requests", f"{len(rates.completions)} after {arguments.warm_up} of warm-up, one at a time; {same}")
    given.add_row("tokens", f"{digits(rates.mean_tokens)} an answer, {counted}")
    figures = Table("", box=None, pad_edge=False)
    for share in ("p50", "p95", "max"):
        figures.add_column(share, justify="right")
    for name, row in rates.figures_ns().items():
        figures.add_row(name, *(seconds(value / NS_PER_S) for value in row.values()))
    console = Console()
    console.print(given)
    console.print()
    console.print(figures)
    console.print(f"\n{digits(rates.tokens_per_s)} tokens/s after the first token")
