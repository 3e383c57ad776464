"""The run, minute by minute: latency over temperature, clock and what else the machine did."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from edgeguard.bench.verdict import percentile_name
from edgeguard.budget import Profile, RequestTimes
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.report import sketch
from edgeguard.report.samples import Samples
from edgeguard.report.sketch import Plot
from edgeguard.types import ThermalLevel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 3_000
_LATENCY_IN, _READING_IN = 2.6, 0.9
_MEDIAN = "running median, without a draft"
_RUNNING = (25, 0.01)
"""The running median is one of so many requests, or of that share of all."""

_PAUSE_PERIODS = 20
"""Nothing was asked for so long: the board was heated, or a calibration had stopped."""

_LONG_S = 180


def draw_run(profile: Profile, samples: Samples, *, available_ns: int | None) -> Plot:
    """``available_ns``: what the deadline leaves for the model, where a configuration says."""
    requests = sorted(profile.requests, key=lambda one: one.at_ns)
    readings = [
        ("°C", [one.temperature_c for one in requests]),
        ("MHz", [one.clock_mhz for one in requests]),
    ]
    seen = [(unit, values) for unit, values in readings if any(value is not None for value in values)]
    busy = [
        (block.samples[0].at_ns, block.factor) for block in samples.blocks if block.samples and block.factor is not None
    ]
    rows = 1 + len(seen) + bool(busy)

    def draw(figure: Figure) -> None:
        heights = [_LATENCY_IN, *[_READING_IN] * (rows - 1)]
        panels = figure.subplots(rows, 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        unit_s, unit = (60.0, "min") if _last_s(requests) > _LONG_S else (1.0, "s")
        pause_ns = _PAUSE_PERIODS * profile.schedule.period_ns
        gaps = [at for at, (one, after) in enumerate(pairwise(requests)) if after.at_ns - one.at_ns > pause_ns]
        _draw_latency(panels[0], profile, requests, unit_s=unit_s, available_ns=available_ns)
        _draw_line(panels[0], [_at(one, unit_s) for one in requests], _running_ms(requests), gaps=gaps, label=_MEDIAN)
        figure.legend(loc="outside upper left", ncols=4)
        for panel, (name, values) in zip(panels[1:], seen, strict=False):
            _draw_line(panel, [_at(one, unit_s) for one in requests], values, gaps=gaps)
            sketch.dress(panel, y=name)
        if busy:
            at = [at_ns / NS_PER_S / unit_s for at_ns, _ in busy]
            panels[-1].step(at, [factor for _, factor in busy], where="post", color=sketch.PALE, lw=1.0)
            panels[-1].axhline(1.0, color=sketch.FRAME, lw=0.8)
            sketch.dress(panels[-1], y="others ×")
        for panel in panels:
            for begin, end in pairwise(samples.requests):
                if begin.worker != end.worker:
                    panel.axvline(end.at_ns / NS_PER_S / unit_s, color=sketch.PALE, lw=0.8, ls=sketch.DOTTED)
        panels[-1].set_xlabel(f"{unit} since the run began", color=sketch.PALE)

    height_in = 0.9 + _LATENCY_IN + (rows - 1) * _READING_IN
    alt = _alt(profile, requests, seen)
    return Plot(
        name="run",
        title="The run",
        svg=sketch.sketch(draw, name="run", alt=alt, width_in=sketch.WIDE_IN, height_in=height_in),
        alt=alt,
        shows=_shows(requests, seen, busy=bool(busy), restarts=bool(samples.blocks)),
        bad="Bad: the running median still climbing at the end (then the board was not as hot as it gets), latency "
        "that jumps between two levels for minutes on end, or slow requests that come in clusters.",
    )


def _draw_latency(
    panel: Axes, profile: Profile, requests: Sequence[RequestTimes], *, unit_s: float, available_ns: int | None
) -> None:
    shown = [requests[at] for at in sketch.thinned([one.latency_ns for one in requests], most=MOST_POINTS)]
    for level in ThermalLevel:
        for drafted, face in ((False, sketch.LEVEL_COLOURS[level]), (True, "none")):
            of = [one for one in shown if (one.level, one.drafted) == (level, drafted)]
            if of:
                panel.plot(
                    [_at(one, unit_s) for one in of],
                    [ms_from_ns(one.latency_ns) for one in of],
                    sketch.LEVEL_MARKERS[level],
                    ms=2.6,
                    mec=sketch.LEVEL_COLOURS[level],
                    mew=0.6,
                    mfc=face,
                    alpha=0.7,
                    label=f"{level.label}, with a draft" if drafted else level.label,
                )
    bound = profile.bound
    panel.axhline(
        ms_from_ns(bound.bound_ns),
        color=sketch.BOUND,
        lw=1.3,
        label=f"bound, {percentile_name(bound.percentile)}: {ms_from_ns(bound.bound_ns):.0f} ms",
    )
    if available_ns is not None:
        label = f"left by the deadline: {ms_from_ns(available_ns):.0f} ms"
        panel.axhline(ms_from_ns(available_ns), color=sketch.INK, lw=1.0, ls=sketch.DOTTED, label=label)
    panel.set_ylim(bottom=0)
    panel.margins(x=0.01)
    sketch.dress(panel, y="latency, ms")


def _draw_line(
    panel: Axes, at: Sequence[float], values: Sequence[float | None], *, gaps: Sequence[int], label: str = ""
) -> None:
    """A line through what is known, interrupted where nothing was asked."""
    ends = [*(gap + 1 for gap in gaps), len(at)]
    for begin, end in zip([0, *ends], ends, strict=False):
        line = [math.nan if value is None else value for value in values[begin:end]]
        panel.plot(at[begin:end], line, color=sketch.INK, lw=1.0, label=label if begin == 0 else "")


def _running_ms(requests: Sequence[RequestTimes]) -> list[float]:
    """The median latency of those without a draft around each request (of all, where each has one)."""
    plain = [at for at, one in enumerate(requests) if not one.drafted] or list(range(len(requests)))
    least, share = _RUNNING
    half = max(least, round(share * len(plain))) // 2
    latencies_ms = [ms_from_ns(requests[at].latency_ns) for at in plain]
    stride = max(1, len(plain) // 600)
    medians = [median(latencies_ms[max(0, at - half) : at + half + 1]) for at in range(0, len(plain), stride)]
    return [medians[max(0, bisect.bisect_right(plain, at) - 1) // stride] for at in range(len(requests))]


def _shows(requests: Sequence[RequestTimes], seen: Sequence[tuple[str, object]], *, busy: bool, restarts: bool) -> str:
    words = ["Every request from its scheduled release to its answer, in the order of the run"]
    if len(requests) > MOST_POINTS:
        words[0] += f" (of {len(requests):,}, the slowest and an even sample of the others)"
    units = {unit for unit, _ in seen}
    below = [name for unit, name in (("°C", "the hottest sensor"), ("MHz", "the clock")) if unit in units]
    below += ["how many times longer than alone a fixed piece of work took, in the gaps"] if busy else []
    if below:
        words.append(f"Below it {', '.join(below)}")
    unread = [name for unit, name in (("°C", "temperature"), ("MHz", "clock")) if unit not in units]
    if unread:
        words.append(f"No {' and no '.join(unread)} could be read here, so nothing says that this board was hot")
    if restarts:
        words.append("An upright dotted line is a new process of the model")
    return ". ".join(words) + "."


def _alt(profile: Profile, requests: Sequence[RequestTimes], seen: Sequence[tuple[str, Sequence[float | None]]]) -> str:
    latencies_ms = sorted(ms_from_ns(one.latency_ns) for one in requests)
    words = (
        f"Latency of {len(requests):,} requests over {_last_s(requests):.0f} s: median {median(latencies_ms):.1f} ms, "
        f"longest {latencies_ms[-1]:.1f} ms, bound {ms_from_ns(profile.bound.bound_ns):.1f} ms"
    )
    for unit, values in seen:
        known = [value for value in values if value is not None]
        words += f"; {min(known):.0f} to {max(known):.0f} {unit}"
    return words + "."


def _last_s(requests: Sequence[RequestTimes]) -> float:
    return max(one.at_ns for one in requests) / NS_PER_S


def _at(one: RequestTimes, unit_s: float) -> float:
    return one.at_ns / NS_PER_S / unit_s
