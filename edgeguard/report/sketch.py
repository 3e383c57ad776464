"""How every plot of the page looks, and how it gets there: drawn by matplotlib, kept as SVG inside the page.

A plot has no colours of its own: each that is drawn with becomes a variable of the page's style sheet, so that the same
drawing is right on white, on black and on paper. Its letters are text, in the page's own typeface. Names of things are
never read as formulas. Fails with ``MissingExtraError`` without matplotlib (the extra ``plots``).
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgeguard.errors import MissingExtraError
from edgeguard.types import ThermalLevel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PALE, GRID, FRAME = "#22272e", "#7a828c", "#e6e8ea", "#c8ccd0"
MEASURED, FITTED, BOUND = "#1f5fa8", "#e06c4f", "#8c1d18"
REST, DEAREST, ON = "#6f9bd1", "#9d7fc0", "#fdfdfd"
LEVEL_COLOURS = {
    ThermalLevel.NOMINAL: "#3d9970",
    ThermalLevel.HOT: "#e5a823",
    ThermalLevel.THROTTLED: "#c0473d",
}
LEVEL_MARKERS = {ThermalLevel.NOMINAL: "o", ThermalLevel.HOT: "^", ThermalLevel.THROTTLED: "s"}
"""Nobody has to tell the colours apart."""

VARIABLES = {
    INK: "ink",
    PALE: "pale",
    GRID: "grid",
    FRAME: "frame",
    MEASURED: "measured",
    FITTED: "fitted",
    BOUND: "bound",
    REST: "rest",
    DEAREST: "dearest",
    ON: "on",
    **{colour: level.label for level, colour in LEVEL_COLOURS.items()},
}
"""The style sheet's name of every colour."""

WIDE_IN, HALF_IN = 9.0, 4.4
DOTTED = (0, (2, 2))
_TEXT_PT = 8.5
STYLE: Any = {
    "text.parse_math": False,
    "font.size": _TEXT_PT,
    "text.color": INK,
    "axes.titlesize": _TEXT_PT,
    "legend.frameon": False,
    "legend.fontsize": _TEXT_PT - 0.5,
    "legend.labelcolor": INK,
}
"""matplotlib's settings, which it types by the keys of the version that is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A drawing with its words: ``alt`` says what is to be seen to who does not see it, ``shows`` how to read it, and
    ``bad`` what would be bad news. ``svg`` is ready to stand in a page."""

    name: str
    title: str
    svg: str
    alt: str
    shows: str
    bad: str


def sketch(draw: Callable[[Figure], None], *, name: str, alt: str, width_in: float, height_in: float) -> str:
    """What ``draw`` draws on an empty figure, as an SVG element of a page; ``name`` keeps its parts apart."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(package="matplotlib", extra="plots", purpose="drawing a report") from error
    settings: Any = {**STYLE, "svg.fonttype": "none", "svg.hashsalt": name}
    content = io.StringIO()
    with mpl.rc_context(settings):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        figure.patch.set_visible(False)
        draw(figure)
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    return _in_page(content.getvalue(), name=name, alt=alt)


def _in_page(svg: str, *, name: str, alt: str) -> str:
    """Without what only a file needs, with names that no other drawing has, and colours that the page chooses."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'<svg\b[^>]*?(viewBox="[^"]*")[^>]*>', rf"<svg \1 {_ROLE.format(html.escape(alt))}>", svg, count=1)
    return re.sub("|".join(VARIABLES), lambda match: f"var(--{VARIABLES[match[0]]})", svg)


_ROLE = 'xmlns:xlink="http://www.w3.org/1999/xlink" role="img" aria-label="{}"'


def dress(panel: Axes, *, x: str = "", y: str = "") -> None:
    """A quiet frame, and what the axes are."""
    panel.set_facecolor("none")
    panel.set_xlabel(x, color=PALE)
    panel.set_ylabel(y, color=PALE)
    panel.tick_params(which="both", colors=PALE, length=2)
    panel.grid(color=GRID, lw=0.6)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(FRAME)


def thinned(values: Sequence[float], *, most: int) -> list[int]:
    """The places of at most about ``most`` values: the greatest tenth of that in any case, the others evenly."""
    if len(values) <= most:
        return list(range(len(values)))
    greatest = sorted(range(len(values)), key=lambda at: -values[at])[: most // 10]
    return sorted({*greatest, *range(0, len(values), -(-len(values) // most))})
