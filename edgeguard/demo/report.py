"""The end of the demo: where the robot went, the figures, the verdict, and where the record is. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from edgeguard.demo.floor_plan import BEGIN, ROBOT, TRACE, floor_plan
from edgeguard.demo.summary import DONE, TOO_BUSY, Spread, Summary
from edgeguard.demo.world import Pose

if TYPE_CHECKING:
    from rich.console import RenderableType


def report(summary: Summary, *, path: Sequence[tuple[float, float]], pose: Pose) -> Iterator[RenderableType]:
    """What to print, in order."""
    from rich.table import Table
    from rich.text import Text

    yield ""
    plan = Text("\n".join([*floor_plan(path, pose), f"from {BEGIN} to {ROBOT}"]), style="dim")
    plan.highlight_words([TRACE, BEGIN, ROBOT], style="not dim cyan")
    yield plan
    yield ""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _rows(summary):
        table.add_row(Text(name, style="bold"), value)
    yield table
    yield ""
    yield _verdict(summary)


def _rows(summary: Summary) -> Iterator[tuple[str, str]]:
    share = summary.model / summary.cycles if summary.cycles else 0.0
    yield "decisions", f"{summary.cycles} fault-free: {summary.model} by the model ({share:.0%}), {summary.safe} safe"
    yield (
        "late frames",
        f"{summary.late_frames} of all; the motor controller counts {summary.received_late}",
    )
    yield "time to command", f"{_spread(summary.ttc_ms)}; bound {_ms(summary.bound_ms)}"
    yield "decision", _spread(summary.decide_ms)
    yield "passes", f"p50 {summary.passes['p50']}, max {summary.passes['max']}; {summary.prefix_tokens} tokens cached"
    if summary.token_by_token is not None:
        compared = summary.token_by_token
        yield (
            "token by token",
            f"{compared.token_by_token_ms:.0f} ms, against {compared.merged_ms:.0f} ms here (×{compared.ratio:.2f})",
        )
    if summary.obeyed is not None:
        yield "obeyed", f"{summary.obeyed:.0%} of the answers are what the operator meant"
    if summary.causes:
        yield "causes", ", ".join(f"{name} {count}" for name, count in summary.causes.items())
    yield "machine", f"busy ×{summary.busy:.2f}"
    yield "record", summary.record


def _verdict(summary: Summary) -> RenderableType:
    from rich.text import Text

    if summary.exit_code == DONE:
        return Text("✔ every command was on the wire in time", style="bold green")
    if summary.exit_code == TOO_BUSY:
        return Text(
            f"? the machine was too busy to judge (×{summary.busy:.1f}); try again when it is free", "bold yellow"
        )
    return Text(f"✘ {'; '.join(summary.complaints)}", style="bold red")


def _spread(spread: Spread) -> str:
    return f"p50 {_ms(spread.p50)}, p99 {_ms(spread.p99)}, max {_ms(spread.max)}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} ms"
