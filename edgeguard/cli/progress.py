"""A bar per phase on stderr, so that stdout holds the result only; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID

    from edgeguard.model.progress import Progress


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Something to hand to a long piece of work as its ``progress``; the bars vanish when it is done."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}", style="progress.download"),
        TimeRemainingColumn(compact=True),
        console=Console(file=sys.stderr),
        disable=not sys.stderr.isatty(),
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
