"""The run, minute by minute: latency over temperature, clock and what else the machine did."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from edgeguard.bench.calibration.words import percentile_name
from edgeguard.budget import Bound, Profile, RequestTimes, Soak
from edgeguard.budget.cost import median
from edgeguard.clock import NS_PER_S, ms_from_ns
from edgeguard.report import sketch
from edgeguard.report.samples import Samples
from edgeguard.report.sketch import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 3_000
_LATENCY_IN, _READING_IN = 2.6, 0.9
_RUNNING = (25, 0.01)
"""The running median is one of so many requests, or of that share of all."""

_PAUSE_PERIODS = 20
"""Nothing was asked for so long: the board was heated, or a calibration had stopped."""

_UNITS_NS = {"s": NS_PER_S, "min": 60 * NS_PER_S}
_LONG_NS = 180 * NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """``requests`` in their order, each at so many ``unit`` since the run began. Lines are interrupted behind ``ends``:
    there nothing was asked for a while."""

    requests: Sequence[RequestTimes]
    unit: str
    at: Sequence[float]
    ends: Sequence[int]

    @classmethod
    def of(cls, profile: Profile) -> _Run:
        requests = sorted(profile.requests, key=lambda one: one.at_ns)
        unit = "min" if requests[-1].at_ns > _LONG_NS else "s"
        pause_ns = _PAUSE_PERIODS * profile.schedule.period_ns
        breaks = [at for at, (one, after) in enumerate(pairwise(requests), 1) if after.at_ns - one.at_ns > pause_ns]
        return cls(
            requests=requests,
            unit=unit,
            at=[one.at_ns / _UNITS_NS[unit] for one in requests],
            ends=[*breaks, len(requests)],
        )

    def when(self, at_ns: int) -> float:
        return at_ns / _UNITS_NS[self.unit]

    @property
    def readings(self) -> dict[str, list[float | None]]:
        """What was read of the board, by its unit; nothing that could not be read at all."""
        columns: dict[str, list[float | None]] = {
            "°C": [one.temperature_c for one in self.requests],
            "MHz": [one.clock_mhz for one in self.requests],
        }
        return {unit: column for unit, column in columns.items() if any(value is not None for value in column)}

    def heated(self, soak: Soak | None) -> tuple[float, float] | None:
        """From when to when the board was heated: the first pause that is long enough."""
        if soak is None:
            return None
        pauses = [(self.requests[end - 1].at_ns, self.requests[end].at_ns) for end in self.ends[:-1]]
        return next(
            ((self.when(begin), self.when(end)) for begin, end in pauses if end - begin >= soak.elapsed_ns > 0), None
        )


def draw_run(profile: Profile, samples: Samples, *, available_ns: int | None) -> Plot:
    """``available_ns``: what the deadline leaves for the model, where a configuration says."""
    run = _Run.of(profile)
    readings, heated = run.readings, run.heated(profile.soak)
    busy = [(block.samples[0].at_ns, block.factor) for block in samples.blocks if block.factor is not None]
    restarts = [after.at_ns for one, after in pairwise(samples.requests) if one.worker != after.worker]
    below = len(readings) + bool(busy)

    def draw(figure: Figure) -> None:
        heights = [_LATENCY_IN, *[_READING_IN] * below]
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _draw_latency(panels[0], run, profile.bound, available_ns=available_ns)
        figure.legend(loc="outside upper left", ncols=5)
        for panel, (unit, values) in zip(panels[1:], readings.items(), strict=False):
            _draw_line(panel, run, values)
            sketch.dress(panel, y=unit)
        if busy:
            when, factors = zip(*((run.when(at_ns), factor) for at_ns, factor in busy), strict=True)
            panels[-1].step(when, factors, where="post", color=sketch.PALE, lw=1.0)
            panels[-1].axhline(1.0, color=sketch.FRAME, lw=0.8)
            sketch.dress(panels[-1], y="other load ×")
        for panel in panels:
            for at_ns in restarts:
                panel.axvline(run.when(at_ns), color=sketch.PALE, lw=0.8, ls=sketch.DOTTED)
            if heated is not None:
                panel.axvspan(*heated, color=sketch.GRID, alpha=0.6, lw=0)
        if heated is not None:
            panels[0].text(sum(heated) / 2, 0.03, "heated", ha="center", color=sketch.PALE,
                           transform=panels[0].get_xaxis_transform())  # fmt: skip
        panels[-1].set_xlabel(f"{run.unit} since the run began", color=sketch.PALE)

    alt = _alt(profile, run)
    return Plot(
        name="run",
        title="The run",
        svg=sketch.sketch(
            draw, name="run", alt=alt, width_in=sketch.WIDE_IN, height_in=0.9 + _LATENCY_IN + below * _READING_IN
        ),
        alt=alt,
        shows=_shows(run, busy=bool(busy), restarts=bool(restarts)),
        bad="Bad: the running median still climbing at the end (then the board was not as hot as it gets), latency "
        "that jumps between two levels for minutes on end, or slow requests that come in clusters.",
    )


def _draw_latency(panel: Axes, run: _Run, bound: Bound, *, available_ns: int | None) -> None:
    shown = sketch.thinned([one.latency_ns for one in run.requests], most=MOST_POINTS)
    for level, drafted in sorted({(one.level, one.drafted) for one in run.requests}):
        colour = sketch.LEVEL_COLOURS[level]
        of = [at for at in shown if (run.requests[at].level, run.requests[at].drafted) == (level, drafted)]
        panel.plot(
            [run.at[at] for at in of],
            [ms_from_ns(run.requests[at].latency_ns) for at in of],
            sketch.LEVEL_MARKERS[level],
            ms=2.6,
            mec=colour,
            mew=0.6,
            mfc="none" if drafted else colour,
            alpha=0.7,
            label=f"{level.label}, with a draft" if drafted else level.label,
        )
    bound_ms = ms_from_ns(bound.bound_ns)
    label = f"bound, {percentile_name(bound.percentile)}: {bound_ms:.0f} ms"
    panel.axhline(bound_ms, color=sketch.BOUND, lw=1.3, label=label)
    if available_ns is not None:
        label = f"left by the deadline: {ms_from_ns(available_ns):.0f} ms"
        panel.axhline(ms_from_ns(available_ns), color=sketch.INK, lw=1.0, ls=sketch.DOTTED, label=label)
    _draw_line(panel, run, _running_ms(run.requests), label="running median")
    panel.set_ylim(bottom=0)
    panel.margins(x=0.01)
    sketch.dress(panel, y="latency, ms")


def _draw_line(panel: Axes, run: _Run, values: Sequence[float | None], *, label: str = "") -> None:
    """A line through what is known."""
    for begin, end in zip([0, *run.ends], run.ends, strict=False):
        line = [math.nan if value is None else value for value in values[begin:end]]
        panel.plot(run.at[begin:end], line, color=sketch.INK, lw=1.0, label="" if begin else label)


def _running_ms(requests: Sequence[RequestTimes]) -> list[float]:
    """The median latency of those without a draft around each request (of all, where each has one)."""
    plain = [at for at, one in enumerate(requests) if not one.drafted] or list(range(len(requests)))
    least, share = _RUNNING
    half = max(least, round(share * len(plain))) // 2
    latencies_ms = [ms_from_ns(requests[at].latency_ns) for at in plain]
    stride = max(1, len(plain) // 600)
    medians = [median(latencies_ms[max(0, at - half) : at + half + 1]) for at in range(0, len(plain), stride)]
    return [medians[max(0, bisect.bisect_right(plain, at) - 1) // stride] for at in range(len(requests))]


def _shows(run: _Run, *, busy: bool, restarts: bool) -> str:
    words = ["Every request from its scheduled release to its answer, in the order of the run"]
    if len(run.requests) > MOST_POINTS:
        words[0] += f" (of {len(run.requests):,}, the slowest and an even sample of the others)"
    if any(one.drafted for one in run.requests):
        words.append("The line through them is the running median of those without a draft")
    names = {"°C": "the hottest sensor", "MHz": "the clock"}
    below = [name for unit, name in names.items() if unit in run.readings]
    below += ["how many times longer than alone a fixed piece of work took, in the gaps"] if busy else []
    if below:
        words.append(f"Below: {'; '.join(below)}")
    unread = [name for unit, name in (("°C", "temperature"), ("MHz", "clock")) if unit not in run.readings]
    if unread:
        words.append(f"No {' and no '.join(unread)} could be read here")
    if restarts:
        words.append("An upright dotted line is a new process of the model")
    return ". ".join(words) + "."


def _alt(profile: Profile, run: _Run) -> str:
    latencies_ms = sorted(ms_from_ns(one.latency_ns) for one in run.requests)
    words = (
        f"Latency of {len(run.requests):,} requests over {run.at[-1]:.0f} {run.unit}: median "
        f"{median(latencies_ms):.1f} ms, longest {latencies_ms[-1]:.1f} ms, bound "
        f"{ms_from_ns(profile.bound.bound_ns):.1f} ms"
    )
    for unit, values in run.readings.items():
        known = [value for value in values if value is not None]
        words += f"; {min(known):.0f} to {max(known):.0f} {unit}"
    return words + "."
