"""A working stand-in for the model's process: the same arguments, the same messages, and a scripted latency.

    python tests/fake_worker.py FD CONFIG [PROFILE]

It replaces ``python -m edgeguard.engine.worker``. How it behaves is JSON, in the environment variable
``EDGEGUARD_FAKE_WORKER`` or in the file beside the configuration that ``behaviour_file`` names; the file wins, and it
is read again before every request, so that a test changes the worker while it runs. Every key is optional::

    {"ready_after_ms": 20,           how long the start takes
     "prefix_tokens": 100, "capacity_tokens": 512, "identity": {"model": "fake"},
     "passes": [24, 3, 3, 3],        the new tokens of each pass of a request
     "base_ms": 2, "token_ms": 0.2, "cached_ms": 0,   a pass: base + token × k + cached × p, …
     "slower": 1.0,                  … times this, …
     "spread": 0.02,                 … times exp(spread × noise); noise is normal with AR(1) correlation …
     "correlation": 0.0, "seed": 1,  … over the requests
     "overhead_ms": 0.3,             tokenising, parsing and hand-over
     "bound_ms": null,               what it claims as its bound; by default the profile's, if there is one
     "values": null,                 answers, given in turn; by default the first value of each field
     "faults": {"5": "hang"},        what goes wrong with the n-th request of this process (1 = first, "*" = each)
     "start": "ready",               or "fail", "crash", "hang"
     "clock": null}                  the file of a ``SharedClock`` that it sleeps by; by default the machine's clock

Faults: ``hang`` (stops reading and answering), ``spin`` (like hang, but busy), ``crash`` (SIGKILL), ``exit`` (leaves
by itself), ``hangup`` (closes its channel and lives on), ``silent`` (no answer), ``late`` (an answer 50 ms after
``answer_by_ns``), ``invalid`` (a value outside the schema), ``missing`` (a field is missing), ``garbage`` (bytes that
are no message, and messages of a wrong shape, before the answer), ``long`` (texts that no answer has), ``foreign`` (an
answer of another epoch), ``twice`` (the same answer two times), ``error`` (``finish`` = error), ``deadline`` (gives
up).
"""

from __future__ import annotations

import json
import math
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run as a script, from any directory

from shared_clock import SharedClock

from edgeguard.budget import load_profile
from edgeguard.channel import Channel, Message, encode
from edgeguard.clock import NS_PER_MS, Clock, SystemClock
from edgeguard.config import load_config
from edgeguard.config.sections import Rung
from edgeguard.messages import answer_message, read_request
from edgeguard.types import Answer, Finish, Pass, Request, ThermalLevel, Value

VARIABLE = "EDGEGUARD_FAKE_WORKER"
LATE_BY_NS = 50 * NS_PER_MS
DEFAULTS: Mapping[str, Any] = {
    "ready_after_ms": 20,
    "prefix_tokens": 100,
    "capacity_tokens": 512,
    "identity": {"model": "fake"},
    "passes": [24, 3, 3, 3],
    "base_ms": 2.0,
    "token_ms": 0.2,
    "cached_ms": 0.0,
    "slower": 1.0,
    "spread": 0.02,
    "correlation": 0.0,
    "seed": 1,
    "overhead_ms": 0.3,
    "bound_ms": None,
    "values": None,
    "faults": {},
    "start": "ready",
    "clock": None,
}


def behaviour_file(config: Path) -> Path:
    """Where the behaviour of the worker of this configuration may be written."""
    return config.with_suffix(".fake_worker.json")


def write_behaviour(config: Path, **keys: Any) -> None:
    """Change the behaviour of the running and of every later worker of this configuration, at once and whole."""
    temporary = behaviour_file(config).with_suffix(".new")
    temporary.write_text(json.dumps(keys))
    temporary.replace(behaviour_file(config))


def read_behaviour(config: Path) -> dict[str, Any]:
    text = os.environ.get(VARIABLE, "{}")
    if behaviour_file(config).exists():
        text = behaviour_file(config).read_text()
    keys = json.loads(text)
    unknown = keys.keys() - DEFAULTS.keys()
    if unknown:
        raise SystemExit(f"fake worker: unknown key {sorted(unknown)}")
    return {**DEFAULTS, **keys}


def first_values(schema: Mapping[str, Any]) -> dict[str, Value]:
    """A valid answer: the first value of every field."""

    def first(field: Mapping[str, Any]) -> Value:
        if "$ref" in field:
            target: Any = schema
            for name in field["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            return first(target)
        if "const" in field:
            return field["const"]  # type: ignore[no-any-return]
        if "enum" in field:
            return field["enum"][0]  # type: ignore[no-any-return]
        return False if field.get("type") == "boolean" else field["minimum"]

    return {name: first(field) for name, field in schema["properties"].items()}


class FakeWorker:
    """One process' worth of scripted answers."""

    def __init__(self, *, fd: int, config: Path, profile: Path | None) -> None:
        self._socket = socket.socket(fileno=fd)
        self._channel = Channel(self._socket.dup())
        self._file = config
        self._config = load_config(config)
        self._behaviour = read_behaviour(config)
        self._clock: Clock = SharedClock(Path(self._behaviour["clock"])) if self._behaviour["clock"] else SystemClock()
        self._profile = None if profile is None else load_profile(profile)
        self._random = random.Random(self._behaviour["seed"])
        self._noise = self._random.gauss(0.0, 1.0)
        self._requests = 0
        self._answers = 0
        self._waiting: list[Message] = []
        self._rung = self._config.rungs[0]

    def run(self) -> None:
        self._start()
        while not self._channel.closed:
            message = self._next_message()
            if message is None:
                continue
            self._behaviour = read_behaviour(self._file)
            if message["type"] == "sweep":
                self._sweep(message)
            elif message["type"] == "request" and not self._superseded():
                read = read_request(message)
                if read is not None:
                    self._rung = self._rung_of(message)
                    self._serve(read[0], admit=read[1])

    def _rung_of(self, message: Message) -> Rung:
        """The plan that is asked for, else the best."""
        rungs = self._config.rungs
        return next((rung for rung in rungs if rung.name == message.get("rung")), rungs[0])

    def _start(self) -> None:
        begun_ns = self._clock.now_ns()
        self._channel.send({"type": "warming", "phase": "loading", "done": 0, "total": 1})
        self._clock.sleep_until_ns(begun_ns + round(self._behaviour["ready_after_ms"] * NS_PER_MS))
        start = self._behaviour["start"]
        if start == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if start == "hang":
            self._hang()
        if start == "fail":
            self._channel.send({"type": "failed", "error": "the fake was told to fail", "exit_code": 5})
            raise SystemExit(5)
        passes = self._behaviour["passes"]
        self._channel.send({
            "type": "ready",
            "identity": self._behaviour["identity"],
            "prefix_tokens": self._behaviour["prefix_tokens"],
            "capacity_tokens": self._behaviour["capacity_tokens"],
            "bound_ns": self._bound_ns(),
            "answer_passes": len(passes),
            "pass_sizes": list(range(min(passes), max(passes) + 1)),
            "others": [
                {
                    "rung": one.plans[0].name,
                    "prefix_tokens": self._behaviour["prefix_tokens"],
                    "capacity_tokens": self._behaviour["capacity_tokens"],
                    "pass_sizes": list(range(min(passes), max(passes) + 1)),
                }
                for one in self._config.by_model[1:]
            ],
        })  # fmt: skip

    def _bound_ns(self, level: ThermalLevel = ThermalLevel.NOMINAL) -> int | None:
        if self._behaviour["bound_ms"] is not None:
            return round(float(self._behaviour["bound_ms"]) * NS_PER_MS)
        bound = None if self._profile is None else self._profile.bound_for(level, rung=self._rung.name)
        if self._profile is None or bound is None:
            return None
        price_ns = self._profile.cost_of(self._rung.name).passes_ns((one.k, one.p) for one in self._shapes())
        return math.ceil(bound.score * price_ns)

    def _shapes(self) -> list[Pass]:
        """The passes of every request, not yet made."""
        sizes = self._behaviour["passes"]
        cached = accumulate(sizes, initial=self._behaviour["prefix_tokens"])
        return [Pass(k=k, p=p, elapsed_ns=0) for k, p in zip(sizes, cached, strict=False)]

    def _next_message(self) -> Message | None:
        if not self._waiting:
            select.select([self._channel], [], [], 1.0)
            self._waiting = self._channel.receive()
        return self._waiting.pop(0) if self._waiting else None

    def _superseded(self) -> bool:
        """Newest wins: a request behind which another one waits is not begun."""
        self._waiting += self._channel.receive()
        return any(message["type"] == "request" for message in self._waiting)

    def _sweep(self, message: Message) -> None:
        self._rung = self._rung_of(message)
        rows = []
        for p in message.get("depths") or [self._behaviour["prefix_tokens"]]:
            for k in message["sizes"]:
                elapsed_ns = [self._pass(k=k, p=p).elapsed_ns for _ in range(message["repeats"])]
                rows.append({"k": k, "p": p, "elapsed_ns": elapsed_ns})
        self._channel.send({"type": "swept", "rows": rows})

    def _serve(self, request: Request, *, admit: bool) -> None:
        self._requests += 1
        faults = self._behaviour["faults"]
        fault = faults.get(str(self._requests), faults.get("*", ""))
        if fault == "silent":
            return
        if fault == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "exit":
            raise SystemExit(0)
        if fault == "hangup":
            self._socket.close()
            self._channel.close()
            self._hang()
        if fault in ("hang", "spin"):
            self._hang(busy=fault == "spin")
        answer = self._answer(request, admit=admit, fault=fault)
        if answer is None:
            return
        if fault == "late":
            self._clock.sleep_until_ns(request.answer_by_ns + LATE_BY_NS)
        if fault == "garbage":
            for packet in (b"\xff\xfe{", b"[]", encode({"type": "answer", "request_id": "x"}), encode({"type": "?"})):
                self._socket.send(packet)
            self._socket.send(b'{"type": "answer", "confidence": 1E+9999999999999999999}')
        if fault == "long":
            self._socket.send(encode({**answer_message(answer), "detail": "x" * 100_000, "finish": "error"}))
            self._socket.send(encode({**answer_message(answer), "rung": "y" * 10_000, "detail": "z" * 5_000}))
        message = answer_message(answer)
        if fault == "foreign":
            message["epoch"] += 1
        for _ in range(2 if fault == "twice" else 1):
            self._channel.send(message)

    def _answer(self, request: Request, *, admit: bool, fault: str) -> Answer | None:
        started_ns = self._clock.now_ns()
        bound_ns = self._bound_ns(request.level)
        passes: list[Pass] = []
        finish, detail = Finish.COMPLETE, ""
        if admit and bound_ns is not None and started_ns + bound_ns > request.answer_by_ns:
            finish, detail = Finish.INFEASIBLE, "the bound does not fit"
        elif fault in ("deadline", "error"):
            finish, detail = Finish(fault), "the fake was told so"
        else:
            self._advance_noise()
            for shape in self._shapes():
                passes.append(self._pass(k=shape.k, p=shape.p))
                if self._cancelled(request):
                    return None
            self._clock.sleep_until_ns(self._clock.now_ns() + round(self._behaviour["overhead_ms"] * NS_PER_MS))
        return Answer(
            request_id=request.request_id,
            epoch=request.epoch,
            finish=finish,
            values=self._values(fault) if finish is Finish.COMPLETE else None,
            detail=detail,
            rung=self._rung.name,
            bound_ns=bound_ns,
            started_ns=started_ns,
            finished_ns=self._clock.now_ns(),
            passes=tuple(passes),
        )

    def _values(self, fault: str) -> dict[str, Value]:
        scripted = self._behaviour["values"]
        values = dict(scripted[self._answers % len(scripted)]) if scripted else first_values(self._rung.schema)
        self._answers += 1
        if fault == "invalid":
            values[next(iter(values))] = "no such value"
        if fault == "missing":
            del values[next(iter(values))]
        return values

    def _pass(self, *, k: int, p: int) -> Pass:
        """Takes as long as the script says, whatever the machine does: slept, not computed."""
        began_ns, script = self._clock.now_ns(), self._behaviour
        cost_ms = script["base_ms"] + script["token_ms"] * k + script["cached_ms"] * p
        cost_ms /= 1 + [one.model for one in self._config.by_model].index(self._rung.model)  # a further one is smaller
        cost_ms *= script["slower"] * math.exp(script["spread"] * self._noise)
        self._clock.sleep_until_ns(began_ns + round(cost_ms * NS_PER_MS))
        return Pass(k=k, p=p, elapsed_ns=self._clock.now_ns() - began_ns)

    def _advance_noise(self) -> None:
        correlation = self._behaviour["correlation"]
        fresh = self._random.gauss(0.0, 1.0)
        self._noise = correlation * self._noise + math.sqrt(1 - correlation**2) * fresh

    def _cancelled(self, request: Request) -> bool:
        """Told so, or replaced by a newer request, which is then served."""
        self._waiting += self._channel.receive()
        return any(
            message["type"] == "request"
            or (message["type"] == "cancel" and message["request_id"] == request.request_id)
            for message in self._waiting
        )

    def _hang(self, *, busy: bool = False) -> None:
        while True:
            if not busy:
                signal.pause()


def main() -> None:
    fd, config, *profile = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us
    FakeWorker(fd=int(fd), config=Path(config), profile=Path(profile[0]) if profile else None).run()


if __name__ == "__main__":
    main()
