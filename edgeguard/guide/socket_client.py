"""Feeds a guard that runs as a service, from any process in any language: nothing here but sockets and JSON.

    YOUR_PROGRAM | python socket_client.py [/run/edgeguard/observe.sock]

YOUR_PROGRAM prints one line per period with what the robot knows: {"said": "go ahead", "front_m": 2.1}. Each line is
stamped with this machine's monotonic clock as it is read and sent at once; of lines that have queued up only the newest
is. Decisions come back on the same connection and are printed, one JSON object a line.

An observation that the guard cannot take now is lost: the next one is better. A guard that is away or restarts is
connected to as soon as it is there. When this program is slow or dead the guard has no observation, and its rules stop
the robot.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import socket
import sys
import time

STDIN = 0
RETRY_S = 0.2


def connect(path: str) -> socket.socket | None:
    """A connection that decisions come back on, or nothing: the guard is not there."""
    guard = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # a packet is a message: no framing of our own
    try:
        guard.connect(path)
        guard.send(b'{"type": "records"}')
    except (FileNotFoundError, ConnectionError):
        guard.close()
        return None
    guard.setblocking(False)
    return guard


def tell(guard: socket.socket, line: bytes) -> None:
    """Send one observation, captured now."""
    try:
        fields = json.loads(line)
    except ValueError:
        print(json.dumps({"type": "refused", "error": f"no JSON: {line[:80]!r}"}), flush=True)
        return
    message = {"type": "observation", "fields": fields, "captured_ns": time.monotonic_ns()}
    with contextlib.suppress(BlockingIOError):  # the guard has no room
        guard.send(json.dumps(message).encode())


def show(packet: bytes) -> None:
    """Print who decided and why, a transition, or why an observation was refused."""
    message = json.loads(packet)
    if message["type"] == "record":
        decision = message["record"]["decision"]
        said = {name: decision[name] for name in ("mode", "source", "causes")}
        print(json.dumps({**said, "axes": decision["set_point"]["axes"]}), flush=True)
    elif message["type"] in ("event", "refused"):
        print(json.dumps(message), flush=True)


def serve(path: str) -> None:
    """Until the input ends. The input is read while the guard is away too, so that nothing old is sent later."""
    guard, begun = None, b""
    while True:
        guard = guard or connect(path)
        watched: list[int | socket.socket] = [STDIN] if guard is None else [STDIN, guard]
        readable, _, _ = select.select(watched, [], [], RETRY_S)
        lines: list[bytes] = []
        if STDIN in readable:
            arrived = os.read(STDIN, 1 << 16)
            if not arrived:
                return
            *lines, begun = (begun + arrived).split(b"\n")
        if guard is None:
            continue
        try:
            if guard in readable:
                packet = guard.recv(1 << 17)
                if not packet:
                    raise ConnectionResetError
                show(packet)
            if lines:
                tell(guard, lines[-1])
        except ConnectionError:
            guard.close()
            guard = None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("socket", nargs="?", default="/run/edgeguard/observe.sock")
    try:
        serve(parser.parse_args().socket)
    except KeyboardInterrupt:
        pass
    except PermissionError as error:
        print(f"{parser.prog}: {error}: observations are for members of the guard's --group", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
