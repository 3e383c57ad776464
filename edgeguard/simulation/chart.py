"""A timeline as a few lines of text: speed, mode, script and causes over time, one column for a stretch of it.

A line is a list of parts, each a text with the name of a style; whoever prints decides about colour, and without any
the shapes alone say everything. Knows nothing of terminals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgeguard.clock import NS_PER_S
from edgeguard.config.plant_sections import Axis
from edgeguard.simulation.timeline import Timeline
from edgeguard.types import Cause, Grade, Mode

Line = list[tuple[str, str]]

RISING = " ▁▂▃▄▅▆▇█"
FALLING = " ▔▀█"
MODE_CELLS = {Mode.INHIBITED: "░", Mode.ARMED: "█", Mode.INTERVENING: "▒", Mode.LATCHED: "▓"}
MODE_STYLES = {Mode.INHIBITED: "dim", Mode.ARMED: "green", Mode.INTERVENING: "yellow", Mode.LATCHED: "red"}
GRADE_STYLES = {Grade.NONE: "", Grade.COMFORTABLE: "yellow", Grade.EMERGENCY: "red", Grade.TERMINAL: "bold red"}
EVENT_CELL, CAUSE_CELL = "▲", "━"

LABEL_WIDTH = 20
MAIN_ROWS = 3
"""The first axis that moves is drawn so high, the others in one row each."""

_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600)
_LEAST_BETWEEN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """``LABEL_WIDTH`` columns of names, ``width`` columns of time, and what a scale needs."""

    timeline: Timeline
    axes: Sequence[Axis]
    width: int

    def lines(self) -> Iterator[Line]:
        yield self._ruler()
        moving = [axis for axis in self.axes if self.timeline.moves(axis)]
        for index, axis in enumerate(moving):
            yield from self._axis(axis, rows=MAIN_ROWS if index == 0 else 1)
        yield self._modes()
        if self.timeline.ladder:
            yield self._plans()
        if self.timeline.script:
            yield self._script()
        for cause in dict.fromkeys(span.cause for span in self.timeline.causes):
            yield self._cause(cause)
        yield [(" " * LABEL_WIDTH, ""), *self._legend()]
        if self.timeline.ladder:
            yield [(" " * LABEL_WIDTH, ""), *self._ladder()]

    def _ruler(self) -> Line:
        """Seconds, as close together as they can be read."""
        per_column_s = self.timeline.duration_ns / NS_PER_S / self.width
        step_s = next((one for one in _STEPS_S if one / per_column_s >= _LEAST_BETWEEN), _STEPS_S[-1])
        cells = [" "] * (self.width + 4)
        count = int(self.timeline.duration_ns / NS_PER_S / step_s + 1e-9)
        for number in range(count + 1):
            text = f"{number * step_s:g}" + (" s" if number == 0 else "")
            at = round(number * step_s / per_column_s)
            cells[at : at + len(text)] = text
        return [(" " * LABEL_WIDTH, ""), ("".join(cells).rstrip(), "dim")]

    def _axis(self, axis: Axis, *, rows: int) -> Iterator[Line]:
        columns = [self._mean(axis.name, column) for column in range(self.width)]
        top, bottom = max(0.0, *columns), min(0.0, *columns)
        for row in reversed(range(rows)):
            name = f"{axis.name} {axis.unit}".strip() if row == rows - 1 else ""
            levels = (value * rows / top - row if top else 0.0 for value in columns)
            scale = f" {top:.3g}" if row == rows - 1 else ""
            yield self._row(name, (_cell(RISING, level) for level in levels), style="cyan", after=scale)
        if bottom < -(axis.high - axis.low) / 100:
            cells = (_cell(FALLING, value / bottom) for value in columns)
            yield self._row("", cells, style="blue", after=f" {bottom:.3g}")

    def _modes(self) -> Line:
        parts: Line = [self._label("mode")]
        for column in range(self.width):
            mode = self.timeline.mode_at(self._begin_ns(column + 1) - 1)
            parts.append((MODE_CELLS[mode], MODE_STYLES[mode]) if mode else (" ", ""))
        return parts

    def _plans(self) -> Line:
        """The better the plan, the fuller the cell."""
        cells: Line = [(" ", "")] * self.width
        for span in self.timeline.plans:
            begin, end = self._column(span.begin_ns), self._column(span.end_ns - 1)
            cells[begin : end + 1] = [self._plan_cell(span.plan)] * (end + 1 - begin)
        return [self._label("plan"), *cells]

    def _ladder(self) -> Line:
        names = (((*self._plan_cell(name),), (f" {name}   ", "dim")) for name in self.timeline.ladder)
        return [part for pair in names for part in pair]

    def _plan_cell(self, name: str) -> tuple[str, str]:
        ladder = self.timeline.ladder
        return _cell(RISING, 1 - ladder.index(name) / len(ladder)), "cyan"

    def _script(self) -> Line:
        cells: Line = [(" ", "")] * self.width
        for at_ns, _ in self.timeline.script:
            cells[self._column(at_ns)] = (EVENT_CELL, "magenta")
        return [self._label("events"), *cells]

    def _cause(self, cause: Cause) -> Line:
        cells: Line = [(" ", "")] * self.width
        for span in self.timeline.causes:
            if span.cause is cause:
                begin, end = (
                    self._column(span.begin_ns),
                    max(self._column(span.begin_ns), self._column(span.end_ns - 1)),
                )
                cells[begin : end + 1] = [(CAUSE_CELL, GRADE_STYLES[span.grade])] * (end + 1 - begin)
        return [self._label(cause.value), *cells]

    def _legend(self) -> Line:
        seen = {span.mode for span in self.timeline.modes}
        parts: Line = []
        for mode in Mode:
            if mode in seen:
                parts += [(MODE_CELLS[mode], MODE_STYLES[mode]), (f" {mode.value}   ", "dim")]
        return parts

    def _row(self, name: str, cells: Iterator[str], *, style: str, after: str) -> Line:
        return [self._label(name), ("".join(cells), style), (after, "dim")]

    def _label(self, name: str) -> tuple[str, str]:
        return f"{name:<{LABEL_WIDTH}}"[: LABEL_WIDTH - 1] + " ", "bold"

    def _mean(self, axis: str, column: int) -> float:
        """Of what was measured in this column's time; the last before it where nothing was."""
        begin_ns, end_ns = self._begin_ns(column), self._begin_ns(column + 1)
        values = [one.measured[axis] for one in self.timeline.moments if begin_ns <= one.at_ns < end_ns]
        return sum(values) / len(values) if values else self.timeline.moment_at(begin_ns).measured[axis]

    def _begin_ns(self, column: int) -> int:
        return column * self.timeline.duration_ns // self.width

    def _column(self, at_ns: int) -> int:
        return min(self.width - 1, at_ns * self.width // self.timeline.duration_ns)


def _cell(steps: str, level: float) -> str:
    """The step for ``level`` of a full cell (0 to 1)."""
    return steps[min(len(steps) - 1, max(0, round(level * (len(steps) - 1))))]
