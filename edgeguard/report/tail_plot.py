"""How latencies are spread: a histogram, and the tail with what can be said about it at the stated confidence.

The upper limit of the share of requests that are slower than x is Clopper and Pearson's, by as many requests as count
as independent: the same reckoning as the verdict's, at every x.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgeguard.bench.calibration.scoring import by_cell
from edgeguard.bench.calibration.verdict import Verdict
from edgeguard.bench.calibration.words import cell_name, percentile_name
from edgeguard.budget import Bound, Profile
from edgeguard.budget.bound import miss_rate_bound
from edgeguard.budget.cost import median
from edgeguard.clock import ms_from_ns
from edgeguard.report import sketch
from edgeguard.report.sketch import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BINS = 50
LIMITS = 48
"""So many places of the tail get an upper limit."""

_HEIGHT_IN = 3.2
_DEEPEST = 400
"""The limits stop at so many longer ones: further down the curve and its limit are one, and reckoning takes long."""
_PALER = 0.5
_DASHED = (0, (4, 2))


def draw_histogram(profile: Profile) -> Plot:
    kinds = sorted({(one.level, one.drafted) for one in profile.requests})
    latencies_ms = [
        [ms_from_ns(one.latency_ns) for one in profile.requests if (one.level, one.drafted) == kind] for kind in kinds
    ]
    every_ms = sorted(value for values in latencies_ms for value in values)
    bound_ms = ms_from_ns(profile.bound.bound_ns)
    beyond = len(every_ms) - bisect.bisect_right(every_ms, bound_ms)

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        panel.hist(
            latencies_ms,
            bins=BINS,
            stacked=True,
            color=[(sketch.LEVEL_COLOURS[level], _PALER if drafted else 1.0) for level, drafted in kinds],
            label=[f"{level.label}, with a draft" if drafted else level.label for level, drafted in kinds],
        )
        panel.axvline(bound_ms, color=sketch.BOUND, lw=1.3, label="bound")
        panel.axvline(median(every_ms), color=sketch.INK, lw=1.0, ls=sketch.DOTTED, label="median")
        panel.set_xlim(left=0)
        sketch.dress(panel, x="latency, ms", y="requests")
        figure.legend(loc="outside upper left", ncols=2)

    alt = (
        f"Histogram of {len(every_ms):,} latencies: median {median(every_ms):.1f} ms, longest {every_ms[-1]:.1f} ms; "
        f"{beyond} lie beyond the bound of {bound_ms:.1f} ms."
    )
    return Plot(
        name="histogram",
        title="How long requests take",
        svg=sketch.sketch(draw, name="histogram", alt=alt, width_in=sketch.HALF_IN, height_in=_HEIGHT_IN),
        alt=alt,
        shows=f"How many requests took how long, by thermal level. {beyond} of {len(every_ms):,} took longer than the "
        "bound that is promised in service.",
        bad="Bad: two hills of one colour (the machine has two regimes, and a run may have met only one), or a tail "
        "that reaches far beyond its hill.",
    )


def draw_tail(profile: Profile, verdict: Verdict | None) -> Plot:
    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        cells = by_cell(profile.requests)
        for bound in profile.bounds:
            cell = cells.get((bound.level, bound.rung, bound.drafted), ())
            latencies_ms = sorted(ms_from_ns(one.latency_ns) for one in cell)
            shade = 1 - 0.65 * profile.rungs.index(bound.rung) / len(profile.rungs)
            _draw_cell(panel, bound.times(profile.margin), latencies_ms, shade=shade)
        if verdict is not None:
            left_ms = ms_from_ns(verdict.available_ns)
            panel.axvline(left_ms, color=sketch.INK, lw=1.0, ls=sketch.DOTTED, label="left by the deadline")
            panel.axhline(verdict.max_miss_rate, color=sketch.PALE, lw=1.0, ls=sketch.DOTTED, label="accepted")
        panel.set_yscale("log")
        panel.set_ylim(0.4 / max(1, len(profile.requests)), 1.2)
        panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        sketch.dress(panel, x="latency, ms", y="requests that take longer")
        figure.legend(loc="outside upper left", ncols=1 if len(profile.rungs) > 1 else 2)

    alt = "; ".join(
        f"{cell_name(bound)}: {percentile_name(bound.percentile)} at most "
        f"{ms_from_ns(bound.times(profile.margin).bound_ns):.1f} ms with {bound.confidence:.0%} confidence"
        for bound in profile.bounds
    )
    return Plot(
        name="tail",
        title="The tail, and its bound",
        svg=sketch.sketch(draw, name="tail", alt=alt, width_in=sketch.HALF_IN, height_in=_HEIGHT_IN),
        alt=alt,
        shows="Thick: the share of requests that took longer than so many milliseconds. Thin: how great that share "
        f"may really be, at {profile.confidence:.0%} confidence, by as many requests as count as independent. The "
        "diamond is the bound, at the share that it leaves out: of the dearest answer, so it lies right of the curve.",
        bad="Bad: a curve that flattens to the right (a heavy tail: the longest request is still to come), or, where "
        "the deadline's line crosses the thin curve, a share above what is accepted.",
    )


def _draw_cell(panel: Axes, bound: Bound, latencies_ms: Sequence[float], *, shade: float) -> None:
    """``shade``: the better the plan, the darker."""
    colour, n = sketch.LEVEL_COLOURS[bound.level], len(latencies_ms)
    solid = "-" if not bound.drafted else sketch.DOTTED
    if n:
        shares = [(n - at - 1) / n for at in range(n)]
        shown = sketch.thinned(latencies_ms, most=1_500)
        panel.step(
            [latencies_ms[at] for at in shown], [shares[at] for at in shown],
            where="post", color=colour, lw=1.4, ls=solid, alpha=shade, label=cell_name(bound),
        )  # fmt: skip
        panel.plot(
            *zip(*_limits(bound, latencies_ms), strict=True), color=colour, lw=0.9, ls=_DASHED, alpha=0.8 * shade
        )
    panel.plot(
        [ms_from_ns(bound.bound_ns)], [1 - bound.percentile], "D", ms=5, color=sketch.BOUND,
        mfc="none" if bound.drafted else sketch.BOUND, zorder=4,
    )  # fmt: skip


def _limits(bound: Bound, latencies_ms: Sequence[float]) -> list[tuple[float, float]]:
    """At some latencies, from the longest down, the greatest share that may be longer."""
    n = len(latencies_ms)
    ranks = sorted({round(min(n / 2, _DEEPEST) ** (at / (LIMITS - 1))) for at in range(LIMITS)})
    points = []
    for rank in reversed(ranks):  # so many are longer than the next one down
        late = min(-(-(rank - 1) // bound.lag), bound.effective_n)
        share = miss_rate_bound(late, bound.effective_n, confidence=bound.confidence)
        points.append((latencies_ms[n - rank], share))
    return points
