"""A timeline as a picture: the axes, measured and commanded, over the mode; the causes as bars; what was done to it.

Drawn with matplotlib (the extra ``plots``), which is imported when something is drawn. The file's ending decides the
format. Fails with ``MissingExtraError``, or ``ConfigError`` for a file that cannot be written.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from edgeguard.clock import NS_PER_MS, NS_PER_S
from edgeguard.config.plant_sections import Axis
from edgeguard.errors import ConfigError, MissingExtraError
from edgeguard.simulation.timeline import Span, Timeline
from edgeguard.types import Action, Grade, Mode

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import ColorType

MODE_COLOURS = {
    Mode.INHIBITED: "#b4bac2",
    Mode.ARMED: "#3d9970",
    Mode.INTERVENING: "#e5a823",
    Mode.LATCHED: "#c0473d",
}
GRADE_COLOURS = {
    Grade.NONE: "#b4bac2",
    Grade.COMFORTABLE: "#e5a823",
    Grade.EMERGENCY: "#d9622b",
    Grade.TERMINAL: "#8c1d18",
}
INK, PALE, MEASURED, COMMANDED = "#22272e", "#7a828c", "#1f5fa8", "#e06c4f"

WIDTH_IN = 11.0
LEFT, RIGHT = 0.155, 0.985
_AXIS_IN, _OTHER_AXIS_IN, _MODE_IN, _CAUSE_IN = 2.3, 0.75, 0.22, 0.21
_TITLE_IN, _LABEL_ROW_IN, _FOOT_IN = 1.0, 0.2, 0.6
_LEAST_LABEL = 8
_DOTTED = (0, (2, 2))
_CHARACTERS_PER_INCH = 15.0
"""Of a label, at its size; for keeping labels apart."""


def draw(timeline: Timeline, *, title: str, about: str, axes: Sequence[Axis], file: Path) -> None:
    """Draw ``timeline`` into ``file``, with those of ``axes`` that moved."""
    figure = _compose(timeline, title=title, about=about, axes=[axis for axis in axes if timeline.moves(axis)])
    try:
        figure.savefig(file, dpi=160)
    except (OSError, ValueError) as error:  # a folder that is not there, an ending that names no format
        raise ConfigError(f"{file}: cannot be drawn ({error}); name a .png, .svg or .pdf file") from error


def _compose(timeline: Timeline, *, title: str, about: str, axes: Sequence[Axis]) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(package="matplotlib", extra="plots", purpose="drawing a timeline") from error
    causes = list(dict.fromkeys(span.cause for span in timeline.causes))
    heights = [_AXIS_IN, *[_OTHER_AXIS_IN] * (len(axes) - 1)] if axes else []
    heights += [_MODE_IN] * bool(timeline.ladder) + [_MODE_IN, _CAUSE_IN * max(1, len(causes))]
    labels = _placed(timeline)
    head_in = _TITLE_IN + _LABEL_ROW_IN * (1 + max((row for _, _, row in labels), default=-1))
    height_in = head_in + sum(heights) + 0.16 * len(heights) + _FOOT_IN
    figure = Figure(figsize=(WIDTH_IN, height_in))
    panels = figure.subplots(
        len(heights),
        1,
        sharex=True,
        squeeze=False,
        gridspec_kw={
            "height_ratios": heights,
            "left": LEFT,
            "right": RIGHT,
            "top": 1 - head_in / height_in,
            "bottom": _FOOT_IN / height_in,
            "hspace": 0.16 * len(heights) / sum(heights),
        },
    )[:, 0]
    figure.text(0.012, 1 - 0.3 / height_in, title, size=14, weight="bold", color=INK)
    lines = "\n".join(textwrap.wrap(about, 150))
    figure.text(0.012, 1 - 0.4 / height_in, lines, size=8.5, color=PALE, va="top", linespacing=1.35)
    for panel, axis in zip(panels, axes, strict=False):
        _draw_axis(panel, axis, timeline)
    if timeline.ladder:
        _draw_plans(panels[-3], timeline)
    _draw_modes(panels[-2], timeline)
    _draw_causes(panels[-1], timeline, [cause.value for cause in causes])
    for panel in panels:
        _finish(panel, timeline)
    _draw_script([*panels[: len(axes)], panels[-1]], labels)
    if axes:
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="lower right", fontsize=8, frameon=False, ncols=2, labelcolor=INK)
    panels[-1].tick_params(axis="x", length=3, labelbottom=True, colors=PALE, labelsize=8)
    panels[-1].set_xlabel("seconds", color=PALE, size=8)
    return figure


def _draw_axis(panel: Axes, axis: Axis, timeline: Timeline) -> None:
    seconds = [moment.at_ns / NS_PER_S for moment in timeline.moments]
    measured = [moment.measured[axis.name] for moment in timeline.moments]
    for span in timeline.modes:
        panel.axvspan(_s(span.begin_ns), _s(span.end_ns), color=MODE_COLOURS[span.mode], alpha=0.13, lw=0)
    panel.axhline(axis.safe or 0.0, color=PALE, lw=0.6)
    panel.fill_between(seconds, axis.safe or 0.0, measured, color=MEASURED, alpha=0.12, lw=0)
    commands = list(_commands(axis, timeline))
    panel.step(*zip(*commands, strict=True), where="post", color=COMMANDED, lw=1.0, label="commanded")
    panel.plot(seconds, measured, color=MEASURED, lw=1.6, label="measured")
    _name(panel, f"{axis.name}\n{axis.unit}".strip())
    panel.margins(y=0.12)
    panel.tick_params(axis="y", colors=PALE, labelsize=7.5, length=2)
    panel.locator_params(axis="y", nbins=4)


def _commands(axis: Axis, timeline: Timeline) -> Iterator[tuple[float, float]]:
    """What the axis was told, from command to command; nothing while no command lives or it is not to follow one."""
    ends_ns = 0
    for at_ns, set_point in timeline.sent:
        if at_ns > ends_ns:
            yield _s(ends_ns), math.nan
        ends_ns = at_ns + set_point.life_ms * NS_PER_MS
        followed = set_point.action in (Action.MOVE, Action.STOP)
        yield _s(at_ns), set_point.axes[axis.name] if followed else math.nan
    yield _s(min(ends_ns, timeline.duration_ns)), math.nan


def _draw_modes(panel: Axes, timeline: Timeline) -> None:
    _draw_spans(panel, timeline, [(span, span.mode.value, MODE_COLOURS[span.mode]) for span in timeline.modes])
    _name(panel, "mode")


def _draw_plans(panel: Axes, timeline: Timeline) -> None:
    """The better the plan, the darker."""
    ladder = timeline.ladder
    shades = {name: 1 - 0.65 * at / len(ladder) for at, name in enumerate(ladder)}
    _draw_spans(panel, timeline, [(span, span.plan, (MEASURED, shades[span.plan])) for span in timeline.plans])
    _name(panel, "plan")


def _draw_spans(panel: Axes, timeline: Timeline, spans: Sequence[tuple[Span, str, ColorType]]) -> None:
    """Each in its colour, with its name where there is room for it."""
    width_s = _s(timeline.duration_ns)
    for span, name, colour in spans:
        begin_s, end_s = _s(span.begin_ns), _s(span.end_ns)
        panel.axvspan(begin_s, end_s, color=colour, lw=0)
        if (end_s - begin_s) / width_s * WIDTH_IN * _CHARACTERS_PER_INCH > len(name) + 6:
            middle_s = (begin_s + end_s) / 2
            panel.text(middle_s, 0.47, name, ha="center", va="center", color="white", size=8, weight="bold")
    panel.set_ylim(0, 1)
    panel.set_yticks([])


def _draw_causes(panel: Axes, timeline: Timeline, names: list[str]) -> None:
    for span in timeline.causes:
        row = names.index(span.cause.value)
        length_s = max(_s(span.end_ns - span.begin_ns), _s(timeline.duration_ns) / 400)
        panel.barh(row, length_s, left=_s(span.begin_ns), height=0.62, color=GRADE_COLOURS[span.grade], lw=0)
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.tick_params(axis="y", colors=INK, labelsize=8.5, length=0)


def _name(panel: Axes, name: str) -> None:
    panel.text(-0.052, 0.5, name, transform=panel.transAxes, ha="right", va="center", color=INK, size=9)


def _finish(panel: Axes, timeline: Timeline) -> None:
    """What all panels have: the same time, and a quiet frame."""
    panel.set_xlim(0, _s(timeline.duration_ns))
    panel.tick_params(axis="x", length=0, labelbottom=False)
    for side in panel.spines.values():
        side.set_visible(False)


def _draw_script(panels: Sequence[Axes], labels: list[tuple[float, str, int]]) -> None:
    """A hair line for everything that was done to the robot, with its label above them all."""
    for at_s, text, row in labels:
        for panel in panels:
            panel.axvline(at_s, color=INK, lw=0.7, ls=_DOTTED, zorder=3)
        height = row * _LABEL_ROW_IN * 72
        panels[0].annotate(
            text,
            (at_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 4 + height),
            textcoords="offset points",
            size=8,
            color=INK,
        )
        panels[0].annotate(
            "",
            (at_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 11 + height),
            textcoords="offset points",
            arrowprops={"arrowstyle": "-", "lw": 0.7, "ls": _DOTTED, "color": INK, "shrinkA": 0, "shrinkB": 0},
        )


def _placed(timeline: Timeline) -> list[tuple[float, str, int]]:
    """Each label of the script with its time and a row high enough that no later label's line runs through it."""
    seconds_per_character = _s(timeline.duration_ns) / (_CHARACTERS_PER_INCH * WIDTH_IN * (RIGHT - LEFT))
    placed: list[tuple[float, str, int]] = []
    for at_ns, label in reversed(timeline.script):
        room = int(_s(timeline.duration_ns - at_ns) / seconds_per_character)
        text = label if len(label) <= room else label[: max(_LEAST_LABEL, room - 1)] + "…"
        end_s = _s(at_ns) + (len(text) + 1) * seconds_per_character
        row = 1 + max((row for at_s, _, row in placed if at_s < end_s), default=-1)
        placed.append((_s(at_ns), text, row))
    return placed


def _s(time_ns: int) -> float:
    return time_ns / NS_PER_S
