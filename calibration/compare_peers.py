"""Time to command of edgeguard and of the systems that make the same command, on the same weights, in one run.

    python calibration/compare_peers.py [--requests 60] [--provider cuda] [--llama-server PATH]
                                        [--openvino-python PYTHON] [--genai-folder FOLDER] [--rates NAME=PP,TG]
                                        [--samples FILE] [--json]

Every system is a process of its own in its best honest configuration, which the output states; all are asked the same
questions in an order that is drawn anew for each, and whoever is not being asked is stopped, not spinning. Time runs
from the observation's text in hand to the parsed answer in hand; everybody has the prompt's prefix cached, what a
question has in common with the one before it, and memory in huge pages where the system gives them. TTFT is until the
first token of the answer is chosen, tokens per second are those of the answer over the time to command, memory is the
peak, start is until the prefix is cached.

Two streams of questions: in both a third of the observation's fields changes from one to the next; in one the command
stays, in the other it changes, too. The questions are chosen by the answers of plain decoding, of a worker that is not
compared. What is said to the robot is one of eight phrases, so most of them come again; edgeguard's draft is what it
answered to the phrase the last time, or, to one that it has not heard yet, what it answered last, and is run as far as
it pays by the prices of passes, which are measured first. ``floor`` is a pass of the observation and the draft, timed
between the questions: what an unchanged command costs if all else is free. In the object that ``--json`` prints, a
system's times are those of the unchanged command.

``same answers`` should be all where the graph is the same (its passes of one token have other bits, which may decide a
near tie); ~ is how far two ways to compute with one file agree; ≠ has other weights and enters no ratio.
``--provider`` is edgeguard's and onnxruntime-genai's; the others run the CPU's kernels, and are asked there only.
``--rates`` adds a system that was not run, by its rates of prompt and of generation (tokens per second): its row is
marked as an estimate, and no ratio knows of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from peers.contest import BLOCKS, CHANGED, UNCHANGED, Contest, Sample, hold, needed
from peers.figures import STREAMS, Figures, figures
from peers.genai import rows as genai_rows
from peers.llama_cpp import NAME as LLAMA
from peers.llama_cpp import LlamaServer
from peers.openvino import NAME as OPENVINO
from peers.openvino import open_openvino
from peers.ours import Edgeguard
from peers.prices import write_prices
from peers.system import AbsentError, System
from peers.task import Question, Task, robot_on, walk
from rich.console import Console
from rich.table import Table

from edgeguard.bench.subject import model_folder
from edgeguard.cli.progress import progress_bars
from edgeguard.config import Config
from edgeguard.engine.model_parts import read_model_parts
from edgeguard.errors import EdgeguardError
from edgeguard.model.fetch import fetch
from edgeguard.model.progress import Progress
from edgeguard.places import default_cache_dir
from edgeguard.plain import to_plain
from edgeguard.runtime.model_choice import chosen_recipe

WIDTH = 120
Estimate = tuple[str, float, float]
"""A name, and tokens per second of prompt and of generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Tokens: of the cached prefix, and the medians of what a question and an answer have."""

    prefix: int
    observation: int
    answer: int

    def __str__(self) -> str:
        return f"{self.prefix} tokens of prefix, {self.observation} of observation, {self.answer} of answer"


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.requests < BLOCKS:
        parser.error(f"--requests: at least {BLOCKS}")
    absent: dict[str, str] = {}
    try:
        with TemporaryDirectory() as scratch, progress_bars() as progress:
            config = robot_on(arguments.provider, Path(scratch))
            found, held, task = measure(config, arguments, absent=absent, progress=progress)
    except EdgeguardError as error:
        print(f"compare_peers: {error}", file=sys.stderr)
        return error.exit_code
    if arguments.samples is not None:
        rows = (json.dumps(to_plain(dataclasses.asdict(sample)), default=str) for sample in held.samples)
        arguments.samples.write_text("".join(f"{row}\n" for row in rows))
    if arguments.json:
        print(json.dumps(found.as_json(), indent=2))
    else:
        show(found, task=task, dropped=held.dropped, estimates=arguments.rates, absent=absent)
    return 0


def measure(
    config: Config, arguments: argparse.Namespace, *, absent: dict[str, str], progress: Progress
) -> tuple[Figures, Contest, Sizes]:
    """Start everybody who is here, ask, and say who is not in ``absent``."""
    folder, recipe = model_folder(config, progress=progress), chosen_recipe(config)
    task = Task(read_model_parts(config=config, folder=folder))
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory()))
        gguf = fetch(recipe.source, downloads=default_cache_dir() / "downloads", scratch=scratch, progress=progress)
        prices = write_prices(config, scratch / "prices.json", progress=progress)
        floor = stack.enter_context(Edgeguard(config=config, folder=folder, task=task))
        streams = {
            stream: _questions(config, task, floor, requests=arguments.requests, changing=stream == CHANGED)
            for stream in _progress_over(STREAMS, "choosing questions", progress)
        }
        example = streams[UNCHANGED][0]
        peers: Mapping[str, Callable[[], System]] = {
            **genai_rows(
                task=task, recipe=recipe, provider=arguments.provider, own=arguments.genai_folder, example=example
            ),
            LLAMA: partial(_open_llama, arguments.llama_server, gguf=gguf, task=task, example=example),
            OPENVINO: partial(open_openvino, task=task, gguf=gguf, python=arguments.openvino_python, example=example),
        }
        if arguments.provider != "cpu":
            absent |= dict.fromkeys((LLAMA, OPENVINO), "it is asked on the CPU only")
            peers = {name: opening for name, opening in peers.items() if name not in absent}
        ours = stack.enter_context(Edgeguard(config=config, folder=folder, task=task, prices=prices))
        systems: list[System] = [ours]
        for name in _progress_over(tuple(peers), "starting", progress):
            try:
                systems.append(stack.enter_context(peers[name]()))
            except AbsentError as error:
                absent[name] = str(error)
        held = hold(systems, floor, streams, progress=progress)
        return figures(held.samples, held.floors, systems), held, _sizes(task, held.samples, streams)


def _questions(config: Config, task: Task, chooser: Edgeguard, *, requests: int, changing: bool) -> list[Question]:
    fields = walk(config, count=needed(requests), changing=changing, answer=chooser.answer)
    return [task.question(one) for one in fields]


def _sizes(task: Task, samples: Sequence[Sample], streams: Mapping[str, Sequence[Question]]) -> Sizes:
    asked = [question.tokens for questions in streams.values() for question in questions]
    answered = [sample.tokens for sample in samples if sample.system == Edgeguard.name]
    return Sizes(prefix=task.prefix_tokens, observation=round(median(asked)), answer=round(median(answered)))


def _open_llama(server: Path | None, *, gguf: Path, task: Task, example: Question) -> System:
    if server is None:
        raise AbsentError("not given: --llama-server PATH of a llama-server built for this machine")
    return LlamaServer(command=[str(server.absolute())], gguf=gguf, task=task, example=example)


def _progress_over(names: Sequence[str], phase: str, progress: Progress) -> Iterator[str]:
    for done, name in enumerate(names):
        progress(phase, done, len(names))
        yield name
    progress(phase, len(names), len(names))


def show(
    found: Figures, *, task: Sizes, dropped: int, estimates: Sequence[Estimate], absent: Mapping[str, str]
) -> None:
    """The table, what it says, and what every system was given."""
    console = Console(highlight=False, width=WIDTH)
    table = Table(title=f"time to command, ms, {task}", title_justify="left", box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for column in (
        "unchanged\np50",
        "\np99",
        "changed\np50",
        "\np99",
        "TTFT",
        "tokens/s",
        "MB",
        "start s",
        "same\nanswers",
    ):
        table.add_column(column, justify="right")
    for row in found.rows:
        times = [f"{ms:.1f}" for stream in STREAMS for ms in row.ttc_ms[stream]]
        same = "" if row.same is None else f"{row.same:.0%}" + f" {row.weights.value}".rstrip()
        rest = (f"{row.ttft_ms:.1f}", f"{row.tokens_per_s:.0f}", f"{row.rss_mb}", f"{row.start_s:.1f}")
        table.add_row(row.name, *times, *rest, same, style="bold" if row.same is None else None)
    for name, prompt_rate, rate in estimates:
        ttft_ms = task.observation / prompt_rate * 1e3
        ttc_ms = f"{ttft_ms + task.answer / rate * 1e3:.0f}"
        table.add_row(f"{name} (estimate)", ttc_ms, "", ttc_ms, "", f"{ttft_ms:.0f}", style="dim")
    console.print(table)
    console.print("~ the same file in kernels of its own; ≠ other weights, so no peer, whatever its speed\n")
    for stream, ratio in found.ratios.items():
        low, high = ratio.interval
        console.print(f"{stream} command: ×{ratio.value:.2f} as fast as {ratio.peer} ({low:.2f} to {high:.2f}, 95 %)")
    p50, p99 = found.rows[0].ttc_ms[UNCHANGED]
    console.print(
        f"floor {found.floor_ms:.1f} ms; an unchanged command takes ×{found.over_floor:.3f} of it, and its p99 is "
        f"×{p99 / p50:.2f} of its p50\n"
    )
    if dropped:
        console.print(f"{dropped} questions are left out: somebody else was computing\n")
    for row in found.rows:
        console.print(f"{row.name}: {row.settings}", soft_wrap=True)
    for name, why in absent.items():
        console.print(f"{name}: not measured, {why}", soft_wrap=True)


def _estimate(text: str) -> Estimate:
    name, _, rates = text.partition("=")
    prompt_rate, _, rate = rates.partition(",")
    try:
        return name, float(prompt_rate), float(rate)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PP,TG") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=60, help="of each stream and system (default: 60)")
    parser.add_argument("--provider", default="cpu", help="the execution provider (default: cpu)")
    parser.add_argument("--llama-server", type=Path, metavar="PATH", help="llama.cpp's server, to compare with it too")
    parser.add_argument(
        "--openvino-python",
        metavar="PYTHON",
        default=sys.executable,
        help="the interpreter of an environment that has openvino-genai (default: this one)",
    )
    parser.add_argument(
        "--genai-folder", type=Path, metavar="FOLDER", help="a folder of onnxruntime-genai's own builder"
    )
    parser.add_argument(
        "--rates", type=_estimate, metavar="NAME=PP,TG", action="append", default=[], help="an estimate, by tokens/s"
    )
    parser.add_argument("--samples", type=Path, metavar="FILE", help="write every request as a line of JSON")
    parser.add_argument("--json", action="store_true", help="one object")
    return parser


if __name__ == "__main__":
    sys.exit(main())
