"""openvino-genai on the GGUF file that our model was made of. Its package may live in another environment."""

from __future__ import annotations

from pathlib import Path

from edgeguard.engine.session import allowed_threads
from peers.system import ChildSystem, System, Weights
from peers.task import Question, Task

NAME = "openvino-genai"
WARM_UP = 3


def open_openvino(*, task: Task, gguf: Path, python: str, example: Question) -> System:
    load = {"gguf": str(gguf), "threads": allowed_threads(0), "warm_up": WARM_UP, "example": example.text}
    return ChildSystem(
        name=NAME, module="openvino_child", package=NAME, python=python, load=load, task=task, weights=Weights.FILE
    )
