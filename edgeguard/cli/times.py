"""Times as people give them on a command line; one that cannot be is refused there and then."""

from __future__ import annotations

import argparse

from edgeguard.clock import NS_PER_S, ns_from_ms

LONGEST_S = 1e9
"""Thirty years, so that nanoseconds are still whole numbers of 64 bits."""

OLDEST_MS = 3_600_000.0
"""What is older than an hour is no observation's age."""


def read_age_ns(text: str) -> int:
    """Milliseconds, as nanoseconds."""
    return ns_from_ms(_number(text, most=OLDEST_MS, what="an age in milliseconds"))


def read_seconds_ns(text: str) -> int:
    """Seconds, as nanoseconds."""
    return round(_number(text, most=LONGEST_S, what="a time in seconds") * NS_PER_S)


def add_stretch(parser: argparse.ArgumentParser, *, of: str) -> None:
    """The options ``--from`` and ``--to``; they set ``from_ns`` and ``to_ns`` since the guard's start."""
    for name, default in (("from", 0), ("to", None)):
        parser.add_argument(
            f"--{name}", dest=f"{name}_ns", type=read_seconds_ns, default=default, metavar="S",
            help=f"{of}: seconds since its start",
        )  # fmt: skip


def add_age(parser: argparse.ArgumentParser, *, default_ns: int | None, said: str) -> None:
    """The option ``--age-ms``; it sets ``age_ns``. ``said`` is the default in words."""
    parser.add_argument(
        "--age-ms", dest="age_ns", type=read_age_ns, default=default_ns, metavar="MS",
        help=f"how old an observation is when it is handed over (default: {said})",
    )  # fmt: skip


def _number(text: str, *, most: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:  # written so that NaN fails too
        raise argparse.ArgumentTypeError(f"{text} is not {what} (0 to {most:,.0f})")
    return number
