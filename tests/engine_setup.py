"""A small robot's configuration and the tiny model behind it, for the tests of the engine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from edgeguard.clock import SystemClock
from edgeguard.config import Config, load_config
from edgeguard.engine.language_model import LanguageModel, load_language_model
from edgeguard.types import Value

CONFIG = """
[model]
folder = "./model"

[prompt]
system = "You drive a robot."
user = "front {front} left {left} door {door}\\noperator says: {words}"

[[prompt.example]]
observation = { front = 2.5, left = 1.0, door = true, words = "go on" }
answer = { action = "forward", speed = 0.4 }

[[prompt.example]]
observation = { front = 0.3, left = 1.0, door = false, words = "turn left" }
answer = { action = "left", speed = 0.0 }

[answer.schema]
type = "object"
properties = { action = { enum = ["forward", "left", "right", "stop"] }, speed = SPEED }

[[field]]
name = "front"
min = 0
max = 10

[[field]]
name = "left"
min = -5
max = 5

[[field]]
name = "door"
kind = "flag"

[[field]]
name = "words"
kind = "text"
max_chars = 40

[[axis]]
name = "linear"
source = { field = "speed" }
min = 0
max = 1
rate_up = 2

[[rule]]
name = "stop"
""".replace("SPEED", '{ type = "number", minimum = 0, maximum = 1, multipleOf = 0.1 }')


def write_config(folder: Path, *changes: tuple[str, str]) -> Path:
    """The configuration as a file, with each ``(old, new)`` text replaced."""
    text = CONFIG
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "robot.toml"
    file.write_text(text)
    return file


T = TypeVar("T")


def apart(work: Callable[[], T]) -> T:
    """Do it in a thread that ends: the one that opens a session has no subnormal floats from then on.

    (``session.set_denormal_as_zero``.) In the worker that is meant; in a test's process, hypothesis minds.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def load(config: Path | Config, model: Path, *, full_head: bool = False) -> LanguageModel:
    """Loaded, not warmed up."""
    read = config if isinstance(config, Config) else load_config(config)
    return apart(
        lambda: load_language_model(
            config=read, folder=model, clock=SystemClock(), progress=lambda *_: None, full_head=full_head
        )
    )


def observation(**changes: Value) -> dict[str, Value]:
    return {"front": 1.25, "left": 0.5, "door": False, "words": "go to the door", **changes}
