"""The budget of one request as a bar: from the capture of the observation to the deadline, or, where no configuration
says what the deadline is, the bound alone.

The parts of the bound are what is typical, what the dearest answer costs beyond it, what the rare request takes beyond
that, and a quick calibration's margin. They add up to the bound of the verdict, and with the rest to the deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgeguard.bench.calibration.verdict import Verdict
from edgeguard.budget import Profile
from edgeguard.budget.cost import median
from edgeguard.clock import ms_from_ns
from edgeguard.report import sketch
from edgeguard.report.sketch import Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT_IN = 1.15
_LEAST_LABEL = 0.035
"""Of the bar: a narrower part has no figure on it; the table beside has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """``colour`` is one of the sketch's; ``variable`` its name in the page."""

    name: str
    words: str
    span_ns: int
    colour: str

    @property
    def variable(self) -> str:
        return sketch.VARIABLES[self.colour]

    @property
    def span_ms(self) -> float:
        return ms_from_ns(self.span_ns)


def parts_of(profile: Profile, verdict: Verdict | None) -> tuple[Part, ...]:
    """In the order of the bar; those that take no time are left out."""
    model = _model_parts(profile)
    if verdict is None:
        return tuple(part for part in model if part.span_ns > 0)
    overhead = verdict.overhead
    around = (
        Part(name="age", words="the observation was captured so long ago", span_ns=overhead.age_ns, colour=sketch.PALE),
        *model,
        Part(name="wire", words="the frame on the line", span_ns=overhead.wire_ns, colour=sketch.PALE),
        Part(name="reserve", words="for the guard's own lateness", span_ns=overhead.reserve_ns, colour=sketch.FRAME),
        Part(name="slack", words="what is left of the deadline", span_ns=verdict.slack_ns, colour=sketch.GRID),
    )
    return tuple(part for part in around if part.span_ns > 0)


def draw_budget(profile: Profile, verdict: Verdict | None) -> Plot:
    parts = parts_of(profile, verdict)
    deadline_ns = None if verdict is None else verdict.deadline_ns
    total_ms = sum(part.span_ms for part in parts)

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        left_ms = 0.0
        for part in parts:
            panel.barh(0, part.span_ms, left=left_ms, height=0.8, color=part.colour, lw=0)
            if part.span_ms > _LEAST_LABEL * total_ms:
                light = part.colour in (sketch.FRAME, sketch.GRID)
                panel.text(
                    left_ms + part.span_ms / 2, 0, f"{part.span_ms:.0f}", ha="center", va="center",
                    color=sketch.INK if light else sketch.ON, weight="bold",
                )  # fmt: skip
            left_ms += part.span_ms
        if deadline_ns is not None:
            panel.axvline(ms_from_ns(deadline_ns), color=sketch.INK, lw=2.0)
            panel.text(ms_from_ns(deadline_ns), 0.5, " deadline ", ha="right", va="bottom", color=sketch.INK)
        panel.set_xlim(0, 1.005 * max(left_ms, ms_from_ns(deadline_ns or 0)))
        panel.set_ylim(-0.45, 0.75)
        panel.set_yticks([])
        sketch.dress(panel, x="ms")
        panel.grid(visible=False)
        panel.spines["left"].set_visible(False)

    alt = ", ".join(f"{part.name} {part.span_ms:.1f} ms" for part in parts)
    if deadline_ns is not None:
        alt += f"; deadline {ms_from_ns(deadline_ns):g} ms"
    return Plot(
        name="budget",
        title="The budget of one request",
        svg=sketch.sketch(draw, name="budget", alt=alt, width_in=sketch.WIDE_IN, height_in=_HEIGHT_IN),
        alt=alt,
        shows="A request that takes as long as the bound, part by part"
        + (", up to the deadline." if verdict is not None else "; with --config also what the deadline leaves for it."),
        bad="Bad: a bar that goes past the deadline. A long first pass wants a shorter prompt, a long rest a shorter "
        "answer, long rare slowness a quieter machine.",
    )


def _model_parts(profile: Profile) -> Sequence[Part]:
    """The bound that the verdict is about, taken apart."""
    worst = profile.bound.times(1 / profile.margin)
    cell = (worst.level, worst.rung, worst.drafted)
    requests = [one for one in profile.requests if (one.level, one.rung, one.drafted) == cell] or profile.requests
    dearest_ns = min(worst.bound_ns, round(worst.bound_ns / worst.score))
    typical_ns = min(dearest_ns, round(median([one.latency_ns for one in requests])))
    first_ns = min(typical_ns, round(median([one.ttft_ns for one in requests])))
    return (
        Part(name="first token", words="until the prompt's pass is done: the median",
             span_ns=first_ns, colour=sketch.MEASURED),
        Part(name="rest of the answer", words="its other passes and the hand-over: the median",
             span_ns=typical_ns - first_ns, colour=sketch.REST),
        Part(name="dearest answer", words="what the answer with the most tokens costs beyond that",
             span_ns=dearest_ns - typical_ns, colour=sketch.DEAREST),
        Part(name="rare slowness", words=f"up to {worst.score:.2f} times its price: the slowest that are promised",
             span_ns=worst.bound_ns - dearest_ns, colour=sketch.FITTED),
        Part(name="margin", words=f"times {profile.margin:g}: a quick calibration has seen too little",
             span_ns=profile.bound.bound_ns - worst.bound_ns, colour=sketch.BOUND),
    )  # fmt: skip
