"""The live timeline: one line per period, with what a person wants to see go by. Pure: a cycle in, text out.

    cycle   age  prefill passes command  slack   speed             mode    decided by       the operator says
       44   0.3    41 ms      2   69 ms +87 ms        │████▌    ↺  armed   model  left slow  “take a left”

*age* of the observation when the guard had it; *prefill* is the first pass, *command* the time from the observation's
capture to its command's last byte on the wire; *slack* is what the bound leaves of the budget. Milliseconds; the bar
is the commanded speed, back to the left, ahead to the right. What was said is shown when it is new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgeguard.clock import ms_from_ns
from edgeguard.types import Action, CycleRecord, Grade, Mode, Source

if TYPE_CHECKING:
    from rich.text import Text

    from edgeguard.demo.robot import Cycle

WIDTH = 116
BAR_BACK, BAR_AHEAD = 5, 8
BAR_M_S_PER_CELL = 0.0625
_EIGHTHS = " ▏▎▍▌▋▊▉"
TURN_RAD_S = 0.1

_MODE_STYLES = {
    Mode.ARMED: "green",
    Mode.INTERVENING: "yellow",
    Mode.INHIBITED: "dim",
    Mode.LATCHED: "bold red",
}
_GRADE_STYLES = {Grade.NONE: "green", Grade.COMFORTABLE: "yellow", Grade.EMERGENCY: "red", Grade.TERMINAL: "bold red"}

_COLUMNS = (
    ("cycle", 5),
    ("age", 6),
    ("prefill", 8),
    ("passes", 7),
    ("command", 8),
    ("slack", 8),
)


def header() -> Text:
    """The names of the columns."""
    from rich.text import Text

    names = "".join(f"{name:>{width}}" for name, width in _COLUMNS)
    bar = BAR_BACK + BAR_AHEAD + 5
    return Text(f"{names}  {'speed':^{bar}}{'mode':<13}{'decided by':<34}the operator says", style="dim")


def line(cycle: Cycle, *, heard_before: str | None) -> Text:
    """The line of one period. ``heard_before``: what the line before was said under."""
    from rich.text import Text

    record, decision = cycle.record, cycle.record.decision
    text = Text(no_wrap=True, overflow="ellipsis")
    for value, (_, width) in zip(_numbers(record), _COLUMNS, strict=True):
        text.append(f"{value:>{width}}", style="" if value != "·" else "dim")
    axes = decision.set_point.axes
    moving = decision.set_point.action is Action.MOVE
    text.append("  ")
    text.append(speed_bar(axes.get("linear", 0.0)), style="cyan" if moving else "yellow")
    text.append(f" {_turn(axes.get('angular', 0.0))}  ", style="cyan" if moving else "yellow")
    text.append(f"{record.mode.value:<13}", style=_MODE_STYLES[record.mode])
    who, style = _decider(record)
    text.append(f"{_shortened(who, 33):<34}", style=style)
    said = cycle.utterance.text
    if said != heard_before:
        text.append(f"“{said}”", style="italic")
    return text


def speed_bar(metres_per_second: float) -> str:
    """A bar around standstill, an eighth of a cell fine ahead, a half back."""
    cells = abs(metres_per_second) / BAR_M_S_PER_CELL
    if metres_per_second < 0:
        full, half = divmod(round(min(cells, BAR_BACK) * 2), 2)
        return f"{'▐' * half + '█' * full:>{BAR_BACK}}│{' ' * BAR_AHEAD}"
    full, eighths = divmod(round(min(cells, BAR_AHEAD) * 8), 8)
    bar = "█" * full + (_EIGHTHS[eighths] if eighths else "")
    return f"{' ' * BAR_BACK}│{bar:<{BAR_AHEAD}}"


def _numbers(record: CycleRecord) -> tuple[str, ...]:
    """Age, prefill, passes, command and slack; a dot is no reading."""
    answer, budget, observation = record.answer, record.budget, record.observation
    passes = () if answer is None else answer.passes
    command_ns = None
    if observation is not None and record.on_wire_ns is not None:
        command_ns = record.on_wire_ns - observation.captured_ns
    slack_ns = None if budget is None else budget.slack_ns
    return (
        str(record.cycle),
        "·" if budget is None else f"{ms_from_ns(budget.age_ns):.1f}",
        f"{ms_from_ns(passes[0].elapsed_ns):.0f} ms" if passes else "·",
        str(len(passes)) if passes else "·",
        "·" if command_ns is None else f"{ms_from_ns(command_ns):.0f} ms",
        "·" if slack_ns is None else f"{ms_from_ns(slack_ns):+.0f} ms",
    )


def _turn(radians_per_second: float) -> str:
    if abs(radians_per_second) < TURN_RAD_S:
        return " "
    return "↺" if radians_per_second > 0 else "↻"


def _decider(record: CycleRecord) -> tuple[str, str]:
    """Who decided and what or why, and in which style."""
    decision = record.decision
    if decision.source is Source.MODEL:
        values = {} if record.answer is None or record.answer.values is None else record.answer.values
        return f"model  {' '.join(map(str, values.values()))}{_held(decision.adjusted)}", "green"
    if decision.causes:
        rule = f" → {decision.rule}" if decision.rule else ""
        return f"safe   {decision.causes[0].value}{rule}", _GRADE_STYLES[decision.grade]
    return "safe   shadow request: it proves", "dim"


def _held(adjusted: tuple[str, ...]) -> str:
    """Which limit cut the command down, if one did: the reason in brackets at the end of what the envelope notes."""
    reasons = [one[one.rfind("(") + 1 : -1] for one in adjusted]
    return next((f", {reason}" for reason in reasons if reason != "rate"), "")


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
