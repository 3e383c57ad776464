"""Whether the bounds hold, as a picture: how scores were spread, calibrated and checked, and what lay beyond."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.bench.calibration.coverage import CellCoverage, Coverage
from edgeguard.bench.calibration.words import cell_name, percentile_name
from edgeguard.errors import ConfigError, MissingExtraError
from edgeguard.report import sketch
from edgeguard.report.sketch import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT_IN = 3.0


def draw_coverage(coverage: Coverage) -> Plot:
    """For the page."""
    alt = "Scores beyond the bound: " + "; ".join(
        f"{cell_name(cell.bound)} {cell.beyond} of {cell.n:,} checked, {cell.rate:.2%}, accepted {cell.accepted:.2%}"
        for cell in coverage.cells
    )
    return Plot(
        name="coverage",
        title="Does it hold?",
        svg=sketch.sketch(
            lambda figure: _draw(figure, coverage),
            name="coverage",
            alt=alt,
            width_in=sketch.WIDE_IN,
            height_in=_HEIGHT_IN,
        ),
        alt=alt,
        shows="Calibration and check of one run, by turns of 100 requests. A score is what a request took over the "
        "price of its passes; the curves are the share of requests with a greater one. The bound comes from the pale "
        "curve alone, and the dark one must have sunk below the accepted share where it meets the bound.",
        bad="Bad: the dark curve above the crossing (the bound does not hold here), or far to the left of it (it is "
        "wider than it needs to be).",
    )


def save_coverage(coverage: Coverage, file: Path) -> None:
    """By itself, in a file; its ending is the format."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(package="matplotlib", extra="plots", purpose="drawing the coverage") from error
    with mpl.rc_context(sketch.STYLE):
        figure = Figure(figsize=(sketch.WIDE_IN, _HEIGHT_IN), layout="constrained")
        _draw(figure, coverage)
        try:
            figure.savefig(file, dpi=160)
        except (OSError, ValueError) as error:  # a folder that is not there, an ending that names no format
            raise ConfigError(f"{file}: cannot be drawn ({error}); name a .png, .svg or .pdf file") from error


def _draw(figure: Figure, coverage: Coverage) -> None:
    panels = figure.subplots(1, len(coverage.cells), squeeze=False, sharey=True)[0]
    for panel, cell in zip(panels, coverage.cells, strict=True):
        _draw_cell(panel, cell)
    panels[0].set_ylabel("share of requests with a greater score", color=sketch.PALE)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=5)


def _draw_cell(panel: Axes, cell: CellCoverage) -> None:
    bound = cell.bound
    checked = [score for turn in cell.checked for score in turn]
    panel.set_yscale("log")
    panel.step(*_tail(cell.calibrated), where="post", color=sketch.REST, lw=1.2, label="calibrated")
    panel.step(*_tail(checked), where="post", color=sketch.INK, lw=1.4, label="checked")
    panel.axvline(bound.score, color=sketch.BOUND, lw=1.3, label="bound")
    panel.axhline(cell.accepted, color=sketch.PALE, lw=1.0, ls=sketch.DOTTED, label="accepted")
    low, high = cell.interval
    least = 0.5 / cell.n
    panel.plot([bound.score] * 2, [max(low, least), max(high, least)], color=sketch.BOUND, lw=4.0, alpha=0.35,
               solid_capstyle="butt", label="beyond it: 95 % interval")  # fmt: skip
    panel.set_ylim(least, 1)
    panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    panel.set_title(
        f"{cell_name(bound)}, {percentile_name(bound.percentile)}: {cell.beyond} of {cell.n:,} beyond",
        loc="left",
        color=sketch.INK,
    )
    sketch.dress(panel, x="score")


def _tail(scores: Sequence[float]) -> tuple[list[float], list[float]]:
    """The scores in order, and the share that is greater than each."""
    ordered = sorted(scores)
    return ordered, [1 - (at + 1) / len(ordered) for at in range(len(ordered))]
