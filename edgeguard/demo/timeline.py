"""The live timeline: one line per period, with what a person wants to see go by. Pure: a cycle in, text out.

    cycle  age prefill passes command  slack    speed        mode         decided by            the operator says
       44  0.3      41      2      69    +87    │████▌    ↺  armed        model  left 0.3       “take a left”

Milliseconds: *age* of the observation when the guard had it; *prefill* is the first pass; *command* the time from the
observation's capture to its command's last byte on the wire; *slack* is what the bound leaves of the budget. The bar is
the commanded speed, back to the left and ahead to the right. What was said is shown when it is new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeguard.clock import ms_from_ns
from edgeguard.types import Action, Cause, CycleRecord, Decision, Grade, Mode, Source

if TYPE_CHECKING:
    from rich.text import Text

    from edgeguard.demo.robot import Cycle

WIDTH = 124
NARROW_BELOW = 110
"""A narrower terminal goes without the columns of least interest; the operator's words get a line of their own."""

BAR_BACK, BAR_AHEAD = 3, 8
BAR_M_S_PER_CELL = 0.0625
_EIGHTHS = " ▏▎▍▌▋▊▉"
TURN_RAD_S = 0.1

_DECIDED_WIDTH = 29
_SAID_LIMIT = 32

_MODE_STYLES = {
    Mode.ARMED: "green",
    Mode.INTERVENING: "yellow",
    Mode.INHIBITED: "dim",
    Mode.LATCHED: "bold red",
}
_GRADE_STYLES = {Grade.NONE: "green", Grade.COMFORTABLE: "yellow", Grade.EMERGENCY: "red", Grade.TERMINAL: "bold red"}

_COLUMNS = {"cycle": 5, "age": 5, "prefill": 8, "passes": 7, "command": 8, "slack": 7}
_WIDE_ONLY = ("age", "passes", "slack")

_CONSEQUENCES = (Cause.MISS, Cause.MISSES_ACCUMULATED, Cause.UNPROVEN)
"""Shown only when nothing else holds: what they follow from says more."""


def header(*, narrow: bool = False) -> Text:
    """The names of the columns."""
    from rich.text import Text

    names = "".join(f"{name:>{width}}" for name, width in _columns(narrow).items())
    bar = f"{'speed':^{BAR_BACK + 1 + BAR_AHEAD}}"
    said = "" if narrow else "the operator says"
    return Text(f"{names}  {bar}    {'mode':<12}{'decided by':<{_DECIDED_WIDTH}}{said}", style="dim")


def line(cycle: Cycle, *, heard_before: str | None, narrow: bool = False) -> Text:
    """The line of one period. ``heard_before``: what the line before was said under."""
    from rich.text import Text

    record, decision = cycle.record, cycle.record.decision
    text, numbers = Text(), _numbers(record)
    for name, width in _columns(narrow).items():
        value = numbers.get(name)
        text.append(f"{'·' if value is None else value:>{width}}", style="dim" if value is None else "")
    axes = decision.set_point.axes
    style = "cyan" if decision.set_point.action is Action.MOVE else "yellow"
    text.append(f"  {speed_bar(axes.get('linear', 0.0))} {_turn(axes.get('angular', 0.0))}  ", style=style)
    text.append(f"{record.mode.value:<12}", style=_MODE_STYLES[record.mode])
    who, style = _decider(record)
    text.append(f"{_shortened(who, _DECIDED_WIDTH - 1):<{_DECIDED_WIDTH}}", style=style)
    if cycle.utterance.text == heard_before:
        return text
    said = Text(f"“{_shortened(cycle.utterance.text, _SAID_LIMIT)}”", style="italic")
    return Text.assemble(" " * _COLUMNS["cycle"], "  ", said, "\n", text) if narrow else text.append_text(said)


def speed_bar(metres_per_second: float) -> str:
    """A bar around standstill, fine to an eighth of a cell ahead and to a half back."""
    cells = abs(metres_per_second) / BAR_M_S_PER_CELL
    if metres_per_second < 0:
        full, half = divmod(round(min(cells, BAR_BACK) * 2), 2)
        return f"{'▐' * half + '█' * full:>{BAR_BACK}}│{' ' * BAR_AHEAD}"
    full, eighths = divmod(round(min(cells, BAR_AHEAD) * 8), 8)
    bar = "█" * full + (_EIGHTHS[eighths] if eighths else "")
    return f"{' ' * BAR_BACK}│{bar:<{BAR_AHEAD}}"


def decisive(decision: Decision) -> Cause | None:
    """The cause that says most about why the model does not drive."""
    causes = [cause for cause in decision.causes if cause not in _CONSEQUENCES] or list(decision.causes)
    return causes[0] if causes else None


def _columns(narrow: bool) -> dict[str, int]:
    return {name: width for name, width in _COLUMNS.items() if not (narrow and name in _WIDE_ONLY)}


def _numbers(record: CycleRecord) -> dict[str, str]:
    """The columns that have a reading."""
    answer, budget, observation = record.answer, record.budget, record.observation
    numbers = {"cycle": str(record.cycle)}
    if budget is not None:
        numbers["age"] = f"{ms_from_ns(budget.age_ns):.1f}"
        if budget.slack_ns is not None:
            numbers["slack"] = f"{ms_from_ns(budget.slack_ns):+.0f}"
    if answer is not None and answer.passes:
        numbers["prefill"] = f"{ms_from_ns(answer.passes[0].elapsed_ns):.0f}"
        numbers["passes"] = str(len(answer.passes))
    if observation is not None and record.on_wire_ns is not None:
        numbers["command"] = f"{ms_from_ns(record.on_wire_ns - observation.captured_ns):.0f}"
    return numbers


def _turn(radians_per_second: float) -> str:
    if abs(radians_per_second) < TURN_RAD_S:
        return " "
    return "↺" if radians_per_second > 0 else "↻"


def _decider(record: CycleRecord) -> tuple[str, str]:
    """Who decided what or why, and in which style."""
    decision = record.decision
    if decision.source is Source.MODEL:
        values = {} if record.answer is None or record.answer.values is None else record.answer.values
        return f"model  {' '.join(map(str, values.values()))}{_clamped(decision)}", "green"
    cause = decisive(decision)
    if cause is None:
        return "safe   shadow request", "dim"
    why = decision.rule if cause is Cause.RULE and decision.rule is not None else cause.value
    return f"safe   {why}", _GRADE_STYLES[decision.grade]


def _clamped(decision: Decision) -> str:
    """Whether the envelope cut the command down; that an axis is still on its way is not worth saying."""
    return " clamped" if any(not one.endswith("(rate)") for one in decision.adjusted) else ""


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
