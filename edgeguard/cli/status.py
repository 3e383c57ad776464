"""``edgeguard status``: how the guard that runs on this machine stands."""

from __future__ import annotations

import argparse
import json
import sys

from edgeguard.cli.run import add_sockets
from edgeguard.cli.times import read_seconds_ns
from edgeguard.cli.wrapped import wrapped
from edgeguard.clock import NS_PER_MS, NS_PER_S, SystemClock, ms_from_ns
from edgeguard.errors import WorkerError
from edgeguard.plain import to_plain
from edgeguard.runtime.status import Status
from edgeguard.service.client import ServiceClient
from edgeguard.service.sockets import default_sockets
from edgeguard.types import Mode

_DESCRIPTION = """\
Ask the running guard how it stands: its mode and every cause that holds, its worker, its link, and how late its ticks
are. --watch asks again twice a second and prints what has changed. --wait-armed returns when the model's commands go
out.

exit codes: 0 answered (and armed, with --wait-armed); 10 not armed in time; 14 there is no guard, or it does not
answer.
"""

_AGAIN_NS = 500 * NS_PER_MS


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``status``; it sets ``func(args) -> int``."""
    parser = commands.add_parser(
        "status",
        help="how the running guard stands",
        description=_DESCRIPTION,
    )
    add_sockets(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object (one a line with --watch)")
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--watch", action="store_true", help="go on until interrupted")
    until.add_argument(
        "--wait-armed", dest="wait_armed_ns", type=read_seconds_ns, metavar="SECONDS",
        help="wait so long until it is armed",
    )  # fmt: skip
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    with ServiceClient.any(arguments.sockets or default_sockets()) as client:
        if arguments.watch:
            _watch(client, as_json=arguments.json)
        if arguments.wait_armed_ns is None:
            status = client.status()
        else:
            status = _wait_armed(client, timeout_ns=arguments.wait_armed_ns)
    if arguments.json:
        print(json.dumps(to_plain(status), indent=2))
    else:
        for line in _lines(status):
            print(wrapped(line, stream=sys.stdout, hang=12))
    return 0


def _watch(client: ServiceClient, *, as_json: bool) -> None:
    """Until interrupted, or until the guard ends."""
    clock, said = SystemClock(), ""
    while True:
        status = client.status()
        text = json.dumps(to_plain(status)) if as_json else _headline(status)
        if text != said:
            print(text, flush=True)
            said = text
        clock.sleep_until_ns(clock.now_ns() + _AGAIN_NS)


def _wait_armed(client: ServiceClient, *, timeout_ns: int) -> Status:
    clock = SystemClock()
    give_up_ns = clock.now_ns() + timeout_ns
    while (status := client.status()).mode is not Mode.ARMED:
        if clock.now_ns() >= give_up_ns:
            stands = f"{_headline(status)} (worker: {status.worker})"
            raise WorkerError(f"not armed after {timeout_ns / NS_PER_S:g} s: {stands}")
        clock.sleep_until_ns(clock.now_ns() + 50 * NS_PER_MS)
    return status


def _headline(status: Status) -> str:
    causes = ", ".join(cause.value for cause in status.causes)
    return f"{status.mode.value}: {causes}: {status.detail}" if causes else status.mode.value


def _lines(status: Status) -> list[str]:
    bound = "unknown" if status.bound_ns is None else f"{ms_from_ns(status.bound_ns):.1f} ms"
    doubted = f", {status.margin:g} times the calibrated one" if status.margin > 1 else ""
    plan = f", the last answer of plan {status.plan!r}" if status.plan else ""
    lateness = f"p99 {ms_from_ns(status.lateness_p99_ns):.2f} ms, most {ms_from_ns(status.lateness_max_ns):.2f} ms"
    counters = ", ".join(f"{name} {count}" for name, count in status.counters.items() if count)
    return [
        _headline(status),
        f"  cycles    {status.cycles}",
        f"  worker    {status.worker} (process {status.worker_pid}), bound {bound}{doubted}{plan}",
        f"  board     {status.board}",
        f"  link      {status.link}",
        f"  guarantee {status.guarantee}",
        f"  recorder  {status.recorder}",
        f"  lateness  {lateness}; {status.scheduling}, memory {status.memory}",
        f"  process   {status.guard_pid}",
        f"  counted   {counters}",
    ]
