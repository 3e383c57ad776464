"""How far long work is, on stderr, so that stdout holds the result only: a bar for each phase on a terminal, and a line
a minute for whoever reads a journal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from edgeguard.clock import NS_PER_S, Clock, SystemClock

if TYPE_CHECKING:
    from rich.progress import TaskID

    from edgeguard.model.progress import Progress


LINE_EVERY_NS = 60 * NS_PER_S


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Something to hand to a long piece of work as its ``progress``; the bars vanish when it is done."""
    if not sys.stderr.isatty():
        yield progress_lines(sys.stderr, clock=SystemClock())
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}", style="progress.download"),
        TimeRemainingColumn(compact=True),
        console=Console(file=sys.stderr),
        transient=True,
    )
    tasks: dict[str, TaskID] = {}

    def show(phase: str, done: int, total: int) -> None:
        if phase not in tasks:
            tasks[phase] = bars.add_task(phase, total=None, count="")
        waits = total == 1 and not done  # for one thing, and nobody knows how long: the bar moves to and fro
        count = f"{done:,}/{total:,}" if total > 1 else ""
        bars.update(tasks[phase], completed=done, total=None if waits else total, count=count)

    with bars:
        yield show


def progress_lines(stream: TextIO, *, clock: Clock) -> Progress:
    """A line a minute, the first after one: what is quick says nothing."""
    due_ns = clock.now_ns() + LINE_EVERY_NS

    def show(phase: str, done: int, total: int) -> None:
        nonlocal due_ns
        if clock.now_ns() >= due_ns:
            due_ns = clock.now_ns() + LINE_EVERY_NS
            print(f"{phase} {done:,}/{total:,}" if total > 1 else phase, file=stream, flush=True)

    return show
