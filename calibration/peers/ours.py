"""edgeguard itself, as a robot runs it: the real worker process, its drafts and its prices. Also the price of its own
floor."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from edgeguard import __version__
from edgeguard.bench.asking import PATIENCE_NS, ask
from edgeguard.bench.worker_client import WorkerClient
from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.config import Config
from edgeguard.model.progress import silent
from edgeguard.runtime.worker_command import worker_argv
from edgeguard.types import Value
from peers.system import CLOCK, System, Timed, Weights
from peers.task import Question, Task


class Edgeguard(System):
    """The worker behind its channel. ``ask`` takes the observation's fields: it writes their text itself. Without
    ``prices`` drafts are run whole, whether that pays or not.
    """

    name = "edgeguard"
    weights = Weights.GRAPH

    def __init__(self, *, config: Config, folder: Path, task: Task, prices: Path | None = None) -> None:
        began_ns = CLOCK.now_ns()
        self._client = WorkerClient.start(argv=worker_argv(config.file, prices, models=[folder]), clock=CLOCK)
        ready = self._client.wait_ready(progress=silent)
        self.start_s = (CLOCK.now_ns() - began_ns) / NS_PER_S
        self.pid = self._client.worker_pid
        self._task = task
        identity = ready.identity
        self.settings = (
            f"edgeguard {__version__}, onnxruntime {identity['onnxruntime']} on {identity['provider']}: drafts "
            f"{identity['drafts']}; head {identity['head']}; {identity['threads']} threads"
        )

    def ask(self, question: Question) -> Timed:
        return self._ask(question.fields, may_draft=True)

    def answer(self, fields: Mapping[str, Value]) -> Mapping[str, Value] | None:
        """The command by plain decoding, for choosing observations."""
        return self._ask(fields, may_draft=False).values

    def pass_ms(self, size: int) -> float:
        """One pass of so many tokens behind the prefix, now."""
        (row,) = self._client.sweep(sizes=[size], repeats=1, limit_ns=PATIENCE_NS)
        return row.elapsed_ns[0] / NS_PER_MS

    def close(self) -> None:
        self._client.close()

    def _ask(self, fields: Mapping[str, Value], *, may_draft: bool) -> Timed:
        began_ns = CLOCK.now_ns()
        asked = ask(self._client, fields, clock=CLOCK, captured_ns=began_ns, may_draft=may_draft)
        answer = asked.answer
        first_ns = answer.started_ns - began_ns + answer.tokenise_ns + answer.passes[0].elapsed_ns
        return Timed(
            elapsed_ns=asked.elapsed_ns,
            first_ns=first_ns,
            values=answer.values,
            tokens=self._task.tokens_of(answer.values or {}),
            passes=tuple(one.k for one in answer.passes),
            kept_tokens=answer.kept_tokens,
        )
