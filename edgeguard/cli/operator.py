"""``edgeguard stop`` and ``edgeguard rearm``: the operator's two words to the guard that runs on this machine."""

from __future__ import annotations

import argparse

from edgeguard.cli.run import add_sockets
from edgeguard.clock import NS_PER_MS, SystemClock
from edgeguard.errors import EdgeguardError
from edgeguard.service.client import ServiceClient
from edgeguard.service.sockets import default_sockets
from edgeguard.types import Mode

_STOP = """\
Stop the robot that the running guard guards, within one tick, and latch: it moves again only after edgeguard rearm,
also across restarts. Whoever may connect to one of the guard's sockets may stop. This is no safety-rated emergency
stop.

exit codes: 0 heard; 1 not permitted; 14 there is no guard, or it does not answer.
"""

_REARM = """\
Take the latch off. Refused while a cause holds; moves nothing by itself: the model is proven anew first. Needs access
to the guard's control socket, which is a permission of its own (edgeguard run --operators).

exit codes: 0 re-armed; 1 not permitted, or refused because a cause holds; 14 there is no guard, or it does not answer.
"""

_TAKEN_UP_NS = 200 * NS_PER_MS
"""A few ticks: by then the word has shown its effect."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``stop`` and ``rearm``; each sets ``func(args) -> int``."""
    for name, summary, description, func in (
        ("stop", "stop the robot within one tick, and latch", _STOP, stop),
        ("rearm", "let the robot move again after a stop", _REARM, rearm),
    ):
        parser = commands.add_parser(name, help=summary, description=description)
        add_sockets(parser)
        parser.set_defaults(func=func)


def stop(arguments: argparse.Namespace) -> int:
    with ServiceClient.any(arguments.sockets or default_sockets()) as client:
        client.stop()
    print("stopping; latched until edgeguard rearm")
    return 0


def rearm(arguments: argparse.Namespace) -> int:
    clock = SystemClock()
    with ServiceClient.controlling(arguments.sockets or default_sockets()) as client:
        client.rearm()
        clock.sleep_until_ns(clock.now_ns() + _TAKEN_UP_NS)
        status = client.status()
    if status.mode is Mode.LATCHED:
        causes = ", ".join(cause.value for cause in status.causes)
        raise EdgeguardError(f"not re-armed, a cause holds: {causes}: {status.detail}")
    print("re-armed; the model is proven anew before it drives: edgeguard status --wait-armed 60")
    return 0
