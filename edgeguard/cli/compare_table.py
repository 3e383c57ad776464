"""Models side by side: a key of who is who and what is to be said of each, and a column of figures for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from edgeguard.clock import ms_from_ns

if TYPE_CHECKING:
    from rich.text import Text

    from edgeguard.bench.comparison.compare import Row
    from edgeguard.bench.comparison.proportion import Share

_LABEL_COLUMNS, _COLUMNS = 36, 13


def show_comparison(rows: Sequence[Row], *, name: str) -> None:
    """``rows`` are at least one, asked the cases of the file ``name``. No intervals where the terminal is narrow."""
    from rich.table import Table
    from rich.text import Text

    from edgeguard.cli.console import Console

    console = Console()
    wide = _LABEL_COLUMNS + _COLUMNS * len(rows)
    brief = console.is_terminal and console.width < wide
    if not brief:
        console.width = max(console.width, wide)
    right = f" of {name}; right answers in %{'' if brief else ', with their 95 % interval'}\n"
    console.print(Text.assemble((f"{rows[0].exact.n} cases", "bold"), right))
    key = Table.grid(padding=(0, 2))
    for number, row in enumerate(rows, start=1):
        key.add_row(Text(str(number), "bold"), row.name)
        key.add_row("", row.verdict)
    console.print(key)
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("cases", justify="right", style="dim")
    for number in range(1, len(rows) + 1):
        table.add_column(Text(str(number), "bold"), justify="right", no_wrap=True)
    for line in (*_right(rows, brief=brief), *_worth(rows), *_by_tag(rows, brief=brief)):
        table.add_row(*line)
    console.print(table)


def _right(rows: Sequence[Row], *, brief: bool) -> Iterator[list[str | Text]]:
    yield ["exactly right", str(rows[0].exact.n), *(_percent(row.exact, brief=brief) for row in rows)]
    for name, share in rows[0].fields.items():
        yield [f"  {name}", str(share.n), *(_percent(row.fields[name], brief=brief) for row in rows)]


def _worth(rows: Sequence[Row]) -> Iterator[list[str | Text]]:
    others = [row.against for row in rows]
    yield ["same answer as 1, %", "", *("" if one is None else f"{one.agreement.value * 100:.0f}" for one in others)]
    divergences = [None if one is None else one.divergence for one in others]
    yield ["divergence from 1, nats", "", *("" if one is None else f"{one:.3f}" for one in divergences)]
    yield ["time to command, ms", "", *(f"{ms_from_ns(row.median_ns):.1f}" for row in rows)]
    yield ["  at most", "", *(_bound(row) for row in rows)]
    yield ["MB read by a pass", "", *(f"{row.bytes_per_pass / 1e6:.0f}" for row in rows)]
    yield ["MB of the worker", "", *(f"{row.resident_bytes / 1e6:.0f}" for row in rows)]
    yield ["tokens of the prefix", "", *(str(row.prefix_tokens) for row in rows)]
    beliefs = [row.reliability for row in rows]
    yield ["stated confidence off by, %", "", *("" if one is None else f"{one.gap * 100:.0f}" for one in beliefs)]


def _by_tag(rows: Sequence[Row], *, brief: bool) -> Iterator[list[str | Text]]:
    for at, tag in enumerate(rows[0].tags):
        yield [f"tag {tag.tag}", str(tag.exact.n), *(_percent(row.tags[at].exact, brief=brief) for row in rows)]


def _bound(row: Row) -> Text:
    from rich.text import Text

    if row.bound is None:
        return Text()
    return Text.assemble((f"p{row.bound.percentile * 100:g}", "dim"), f" {ms_from_ns(row.bound.bound_ns):.0f}")


def _percent(share: Share, *, brief: bool) -> Text:
    from rich.text import Text

    low, high = share.interval
    interval = "" if brief else f" {low * 100:.0f}–{high * 100:.0f}"
    return Text.assemble(f"{share.value * 100:.1f}", (interval, "dim"))
