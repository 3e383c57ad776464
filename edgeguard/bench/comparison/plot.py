"""A comparison as a picture: quality against time for every model, and whether their stated confidence can be believed.

Drawn with matplotlib (the extra ``plots``), which is imported when something is drawn. The file's ending decides the
format. Fails with ``MissingExtraError``, or ``ConfigError`` for a file that cannot be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.bench.comparison.compare import Row
from edgeguard.clock import ms_from_ns
from edgeguard.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, PALE = "#22272e", "#7a828c"
COLOURS = ("#22272e", "#1f5fa8", "#3d9970", "#e06c4f", "#8c5fb0", "#e5a823", "#c0473d", "#5fb0a8")
_SIZE_IN = (11.0, 5.2)
_PAD_IN = 0.1
_LEGEND_COLUMNS = 3


def draw(rows: Sequence[Row], *, title: str, file: Path) -> None:
    """Draw ``rows`` into ``file``."""
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise MissingExtraError(package="matplotlib", extra="plots", purpose="drawing a comparison") from error
    figure = Figure(figsize=_SIZE_IN, layout=ConstrainedLayoutEngine(w_pad=_PAD_IN, h_pad=_PAD_IN))
    figure.suptitle(title, x=0.01, ha="left", color=INK, size=11, weight="bold")
    quality, belief = figure.subplots(1, 2, width_ratios=[1.45, 1])
    for at, row in enumerate(rows):
        _draw_quality(quality, row, colour=COLOURS[at % len(COLOURS)])
        _draw_belief(belief, row, colour=COLOURS[at % len(COLOURS)])
    to_the_bound = ", line to the bound" if any(row.bound is not None for row in rows) else ""
    _finish(quality, f"time to command, ms: dot median{to_the_bound}", "right answers, %, with their 95 % interval")
    quality.margins(x=0.12, y=0.12)
    quality.set_xlim(left=0)
    figure.legend(loc="outside lower left", ncols=_LEGEND_COLUMNS, fontsize=8, frameon=False, labelcolor=INK)
    belief.plot([0, 100], [0, 100], color=PALE, lw=0.8, ls=(0, (2, 2)), zorder=1)
    _finish(belief, "stated confidence, %", "right answers of that group, %")
    belief.set_xlim(0, 102)
    belief.set_ylim(0, 102)
    try:
        figure.savefig(file, dpi=160)
    except (OSError, ValueError) as error:  # a folder that is not there, an ending that names no format
        raise ConfigError(f"{file}: cannot be drawn ({error}); name a .png, .svg or .pdf file") from error


def _draw_quality(panel: Axes, row: Row, *, colour: str) -> None:
    low, high = row.exact.interval
    share, median_ms = row.exact.value * 100, ms_from_ns(row.median_ns)
    if row.bound is not None:
        panel.hlines(share, median_ms, ms_from_ns(row.bound.bound_ns), color=colour, lw=1.2, alpha=0.45)
    panel.vlines(median_ms, low * 100, high * 100, color=colour, lw=1.2, alpha=0.45)
    panel.plot([median_ms], [share], "o", color=colour, ms=8, label=row.name, zorder=3)


def _draw_belief(panel: Axes, row: Row, *, colour: str) -> None:
    if row.reliability is None:
        return
    groups = row.reliability.groups
    stated, right = [group.stated * 100 for group in groups], [group.right.value * 100 for group in groups]
    panel.plot(stated, right, "o-", color=colour, ms=4, lw=1.2, alpha=0.9, zorder=3)


def _finish(panel: Axes, x: str, y: str) -> None:
    panel.set_xlabel(x, color=PALE, size=8.5)
    panel.set_ylabel(y, color=PALE, size=8.5)
    panel.tick_params(colors=PALE, labelsize=8, length=2)
    panel.grid(color="#e6e8ea", lw=0.6)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color("#c8ccd0")
