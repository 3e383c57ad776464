"""llama.cpp's server on the GGUF file that our model was made of, over HTTP on this machine.

A grammar (GBNF), the prompt cached (``cache_prompt``), one slot, a connection that is open before the clock starts. The
closing brace is a stop word, so the pass that would choose the end of the turn is not made. Without a draft: its n-gram
speculation was slower than none, in the same run.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.engine.process import HUGE_PAGES
from edgeguard.engine.session import allowed_threads
from peers.system import CLOCK, AbsentError, System, Timed, Weights
from peers.task import Question, Task

NAME = "llama.cpp"
START_LIMIT_NS = 60 * NS_PER_S
CONTEXT = 512
MOST_TOKENS = 64
WARM_UP = 3


class LlamaServer(System):
    """``command`` is the server's own file, or whatever starts one with its options (a fake, in a test)."""

    weights = Weights.FILE

    def __init__(
        self,
        *,
        command: Sequence[str],
        gguf: Path,
        task: Task,
        example: Question,
    ) -> None:
        self.name, self._task = NAME, task
        threads, port = str(allowed_threads(0)), _free_port()
        common = ["--model", str(gguf), "--host", "127.0.0.1", "--port", str(port), "--threads", threads]
        began_ns = CLOCK.now_ns()
        try:
            self._process = subprocess.Popen(
                [*command, *common, "--ctx-size", str(CONTEXT), "--parallel", "1"],
                env={**HUGE_PAGES, **os.environ},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise AbsentError(f"{command[0]} cannot be run ({error.strerror})") from error
        self.pid = self._process.pid
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            self._await_healthy(until_ns=began_ns + START_LIMIT_NS)
        except AbsentError:
            self.close()
            raise
        self.start_s = (CLOCK.now_ns() - began_ns) / NS_PER_S
        for _ in range(WARM_UP):
            self.ask(example)
        build = self._call("GET", "/props").get("build_info")
        self.settings = f"llama-server {build}: the GGUF file, grammar, cache_prompt, {threads} threads"

    def ask(self, question: Question) -> Timed:
        began_ns = CLOCK.now_ns()
        reply = self._call("POST", "/completion", {
            "prompt": self._task.prefix + question.text,
            "grammar": self._task.gbnf,
            "cache_prompt": True,
            "temperature": 0.0,
            "n_predict": MOST_TOKENS,
            "stop": ["}"],
        })  # fmt: skip
        rest = f"{reply['content']}}}"
        values = self._task.parse(rest)
        return Timed(
            elapsed_ns=CLOCK.now_ns() - began_ns,
            first_ns=round(reply["timings"]["prompt_ms"] * NS_PER_MS),
            values=values,
            tokens=self._task.answer_tokens(rest),
        )

    def resume(self) -> None:
        """Awake, with a fresh connection: the server closes one that was silent for some seconds."""
        super().resume()
        self._connection.close()
        self._connection.connect()

    def close(self) -> None:
        self._connection.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await_healthy(self, *, until_ns: int) -> None:
        while self._process.poll() is None and CLOCK.now_ns() < until_ns:
            try:
                if self._call("GET", "/health").get("status") == "ok":
                    return
            except OSError:
                self._connection.close()
            CLOCK.sleep_until_ns(CLOCK.now_ns() + 20 * NS_PER_MS)
        raise AbsentError(f"llama-server did not start (status {self._process.poll()})")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        self._connection.request(
            method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"}
        )
        reply: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return reply


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
