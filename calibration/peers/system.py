"""A system of the comparison: asked one question at a time, timed from here, stopped while others are asked.

Stopped is SIGSTOP: a runtime whose threads spin for work would otherwise slow whoever is measured. Nanoseconds of the
monotonic clock, which all processes share. Raises ``AbsentError`` for a peer that cannot be had here, with the way out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypeVar

from edgeguard.clock import NS_PER_S, SystemClock
from edgeguard.engine.process import HUGE_PAGES
from edgeguard.types import Value
from peers.task import Question, Task

CALIBRATION = Path(__file__).parents[1]
CLOCK = SystemClock()
Some = TypeVar("Some", bound="System")


class Weights(Enum):
    """The very graph that edgeguard runs; the file it was made of, in kernels of the system's own; or other numbers."""

    GRAPH = ""
    FILE = "~"
    OTHER = "≠"


class AbsentError(Exception):
    """A peer that cannot be measured here; the message says why and what to install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One answer. ``first_ns`` is when its first token was chosen; ``passes`` are token counts where they are known,
    and ``kept_tokens`` how many of all of them were not run in vain.
    """

    elapsed_ns: int
    first_ns: int
    values: Mapping[str, Value] | None
    tokens: int
    passes: tuple[int, ...] = ()
    kept_tokens: int = 0


class System(ABC):
    """``weights`` says with what it computes: only the same weights make a peer."""

    name: str
    settings: str
    start_s: float
    weights: Weights
    pid: int

    @abstractmethod
    def ask(self, question: Question) -> Timed:
        """From the observation's text in hand to the parsed answer in hand."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self: Some) -> Some:
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        self.close()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def peak_mb(self) -> int:
        """The most memory that it ever had at once, its share of mapped files included."""
        (kilobytes,) = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(kilobytes) // 1024


class ChildSystem(System):
    """A peer behind ``peers.child``, in an interpreter that has its package."""

    def __init__(
        self,
        *,
        name: str,
        module: str,
        package: str,
        python: str,
        load: Mapping[str, Any],
        task: Task,
        weights: Weights,
    ) -> None:
        require(package, python=python)
        self.name, self.weights, self._task = name, weights, task
        self._said = TemporaryFile("w+")  # noqa: SIM115 - as long as the process
        began_ns = CLOCK.now_ns()
        self._process = subprocess.Popen(
            [python, "-m", f"peers.{module}"],
            cwd=CALIBRATION,
            env={**HUGE_PAGES, **os.environ},  # as our worker has
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )
        self.pid = self._process.pid
        try:
            self.settings = str(self._say({**load, "prefix": task.prefix, "regex": task.regex})["settings"])
        except AbsentError:
            self.close()
            raise
        self.start_s = (CLOCK.now_ns() - began_ns) / NS_PER_S

    def ask(self, question: Question) -> Timed:
        began_ns = CLOCK.now_ns()
        reply = self._say({"text": question.text})
        values = self._task.parse(reply["text"])
        return Timed(
            elapsed_ns=CLOCK.now_ns() - began_ns,
            first_ns=reply["first_ns"] - began_ns,
            values=values,
            tokens=self._task.answer_tokens(reply["text"]),
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # it ends with its questions
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def _say(self, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # what it said before it died is of more use
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._said.seek(0)
            (*_, last) = ["", *filter(None, map(str.strip, self._said))]
            raise AbsentError(f"its process ended with status {status}: {last}")
        reply: dict[str, Any] = json.loads(line)
        return reply


def require(package: str, *, python: str) -> None:
    """``AbsentError`` unless that interpreter has the package."""
    module = package.replace("-", "_")
    here = python == sys.executable
    probe = [python, "-c", f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"]
    found = importlib.util.find_spec(module) if here else not subprocess.run(probe, check=False).returncode
    if not found:
        raise AbsentError(f"not installed here: pip install {package}")
