"""What the tests of the bench measure: a small configuration, the fake worker in the model's place, made profiles."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_worker import DEFAULTS, write_behaviour

from edgeguard.bench.calibration.effort import QUICK
from edgeguard.bench.calibration.sample import Look
from edgeguard.bench.subject import Subject
from edgeguard.budget import Bound, PassCost, PassTimes, Profile, RequestTimes, Schedule
from edgeguard.clock import NS_PER_MS
from edgeguard.config import Config, load_config, parse_config

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")
NEVER_BUSY = 1e9
HASTY = replace(QUICK, busy_limit=NEVER_BUSY, sweep_repeats=5, fit_requests=20)
"""The quick way on a machine that is as busy as it likes."""

CONFIG = """
[timing]
period_ms = {period_ms}
deadline_ms = {deadline_ms}
tick_ms = 5
reserve_ms = 2

[budget]
confidence = {confidence}
max_miss_rate = {max_miss_rate}

[prompt]
user = "{{said}} {{front_m}} {{lamp}} {{tilt}}"

[[prompt.example]]
observation = {{ said = "go ahead", front_m = 2.0, lamp = true, tilt = -3 }}
answer = {{ go = "forward" }}

[[prompt.example]]
observation = {{ said = "Stop", front_m = 2.0, lamp = true, tilt = 5 }}
answer = {{ go = "stop" }}

[answer.schema]
type = "object"
required = ["go"]
properties = {{ go = {{ enum = ["forward", "stop"] }} }}

[[field]]
name = "said"
kind = "text"
stop_words = ["stop"]

[[field]]
name = "front_m"
min = 0
max = 10
decimals = 1

[[field]]
name = "lamp"
kind = "flag"

[[field]]
name = "tilt"
decimals = 0

[[axis]]
name = "linear"
source = {{ field = "go", values = {{ forward = 0.4, stop = 0.0 }} }}
min = 0
max = 0.5
rate_up = 2

[[rule]]
name = "stop"
"""


def config_text(**keys: Any) -> str:
    return CONFIG.format(**{"period_ms": 30, "deadline_ms": 30, "confidence": 0.5, "max_miss_rate": 0.05, **keys})


def config(**keys: Any) -> Config:
    return parse_config(config_text(**keys).encode(), file=Path("robot.toml"))


def write_config(folder: Path, *, behaviour: dict[str, Any] | None = None, **keys: Any) -> Config:
    """A configuration in a file, and how its worker behaves."""
    file = folder / "robot.toml"
    file.write_text(config_text(**keys))
    write_behaviour(file, **(behaviour or {}))
    return load_config(file)


def fake_command(file: Path, profile: Path | None) -> list[str]:
    return [sys.executable, str(FAKE_WORKER), "{fd}", str(file), *([] if profile is None else [str(profile)])]


def fake_subject() -> Subject:
    return Subject(command=fake_command, identity=lambda: DEFAULTS["identity"])


class FakeEye:
    """A board whose temperature and level are told by ``look()``."""

    def __init__(self, look: Callable[[], Look]) -> None:
        self.look = look
        self.observed = look().temperature_c is not None


def made_profile(*, latencies_ms: Sequence[float] = (10.0,) * 300, bound_ms: float = 15.0, **keys: Any) -> Profile:
    """A profile as if these latencies had been measured."""
    n = len(latencies_ms)
    bound = Bound(
        bound_ns=round(bound_ms * NS_PER_MS), score=1.5, rank=1, percentile=0.99, confidence=0.95,
        n=n, effective_n=n, lag=1,
    )  # fmt: skip
    content: dict[str, Any] = {
        "kind": "quick",
        "created": "2026-01-01T00:00:00Z",
        "fingerprint": {"machine": "a board", "model": "fake"},
        "schedule": Schedule(period_ns=200 * NS_PER_MS, skipped=1, dropped=10, busy=1.05),
        "bounds": (bound,),
        "cost": PassCost(
            sizes=(2, 8), prices_ns=(2e6, 4.5e6), p_reference=100, per_cached_ns=12.5, constant_ns=300_000
        ),
        "sweep": (PassTimes(k=2, p=100, elapsed_ns=(1_900_000, 2_000_000)), PassTimes(k=8, p=100, elapsed_ns=(1,))),
        "requests": tuple(
            RequestTimes(latency_ns=round(ms * NS_PER_MS), price_ns=9 * NS_PER_MS, dearest_ns=10 * NS_PER_MS)
            for ms in latencies_ms
        ),
    }  # fmt: skip
    return Profile(**{**content, **keys})
