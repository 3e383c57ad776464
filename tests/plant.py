"""A small plant for tests: a robot that drives and turns, with a gripper. Everything the guard can be asked to do."""

from __future__ import annotations

from pathlib import Path

from edgeguard.answer import read_schema
from edgeguard.config import Config, parse_config
from edgeguard.guard.settings import Settings

WIRE_NS = 3_000_000
RESERVE_NS = 5_000_000

PLANT = """
[prompt]
user = "{said} {front_m}"

[answer.schema]
type = "object"
[answer.schema.properties]
speed = { type = "number", minimum = -0.2, maximum = 0.5, multipleOf = 0.1 }
turn = { enum = ["left", "straight", "right"] }
grip = { type = "boolean" }

[[field]]
name = "said"
kind = "text"
stop_words = ["stop", "halt"]
[[field]]
name = "front_m"
min = 0
max = 10
max_age_ms = 150
[[field]]
name = "linear"
[[field]]
name = "docked"
kind = "flag"

[[axis]]
name = "linear"
unit = "m/s"
source = { field = "speed" }
min = -0.2
max = 0.5
rate_up = 1.0
decel_comfortable = 1.0
decel_emergency = 2.0
jerk_comfortable = 10.0
jerk_emergency = 20.0
measured = "linear"
clearance = 1.0
[[axis]]
name = "angular"
unit = "rad/s"
source = { field = "turn", values = { left = 1.0, straight = 0.0, right = -1.0 } }
min = -1.0
max = 1.0
rate_up = 4.0
[[axis]]
name = "gripper"
source = { field = "grip", values = { true = 0.1, false = 0.0 } }
safe = "hold"
min = 0.0
max = 0.1
rate_up = 0.5

[link.controller_decel]
linear = 1.0

[[rule]]
name = "obstacle"
when = { field = "front_m", below = 0.3, until_above = 0.5 }
grade = "emergency"
always = true
[[rule]]
name = "creep away"
when = { field = "docked", equals = true }
axes = { linear = -0.1 }
[[rule]]
name = "stop"

[[interlock]]
name = "docked"
when = { field = "docked", equals = true }
axis = "linear"
max = 0.0
"""


def plant(text: str = PLANT, **replaced: str) -> Config:
    """The plant's configuration; ``replaced`` puts lines of another value in place: ``max_age_ms="100"``."""
    return parse_config(text.encode(), file=Path("plant.toml"))


def settings(text: str = PLANT, *, reserve_ns: int = RESERVE_NS, wire_ns: int = WIRE_NS) -> Settings:
    """The core's settings for it."""
    config = plant(text)
    return Settings.from_config(config, read_schema(config.schema), reserve_ns=reserve_ns, wire_ns=wire_ns)
