"""What a pass costs, as measured and as priced: by its new tokens, from the first token's view, and by its context."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from edgeguard.bench.percentile import percentile
from edgeguard.budget import PassCost, PassTimes, Profile
from edgeguard.budget.cost import median
from edgeguard.clock import ms_from_ns
from edgeguard.report import sketch
from edgeguard.report.estimates import Estimates
from edgeguard.report.samples import Samples
from edgeguard.report.sketch import Plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 1_200
_HEIGHT_IN = 3.2
_ALPHAS = (1.0, 0.65, 0.4)
"""Of the depths, the deepest first."""
_SAME_DEPTH = 2  # tokens


def draw_costs(profile: Profile, samples: Samples, estimates: Estimates, *, of: str = "") -> tuple[Plot, Plot, Plot]:
    """All three, of a profile of one model; ``of`` names the plans that ask it, where there are several models."""
    return (
        draw_passes(profile, samples, estimates, of=of),
        draw_first_token(profile, samples, of=of),
        draw_step(profile, samples, of=of),
    )


def draw_passes(profile: Profile, samples: Samples, estimates: Estimates, *, of: str = "") -> Plot:
    """``pass_cost(k, p)``: the sweep's medians with their 10th to 90th percentile, passes of requests, the price."""
    cost, rows = profile.cost, _measured(profile.sweep)
    seen = _by_size(samples)

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        for size, elapsed_ms in seen.items():
            points = elapsed_ms[:: max(1, len(elapsed_ms) // 60)]
            panel.plot([size] * len(points), points, ".", ms=2.5, color=sketch.FITTED, alpha=0.25, mew=0)
        for alpha, (depth, group) in zip(_ALPHAS, _by_depth(rows).items(), strict=False):
            middle = [ms_from_ns(round(row.median_ns)) for row in group]
            low, high = (
                [ms_from_ns(round(percentile(row.elapsed_ns, share))) for row in group] for share in (0.1, 0.9)
            )
            spread = [
                [max(0.0, m - one) for m, one in zip(middle, low, strict=True)],
                [max(0.0, one - m) for m, one in zip(middle, high, strict=True)],
            ]
            panel.errorbar(
                [row.k for row in group], middle, yerr=spread, fmt="o", ms=3.5, lw=1.0, color=sketch.MEASURED,
                alpha=alpha, label=f"sweep, {depth:,} cached",
            )  # fmt: skip
        sizes = _curve(cost.sizes[0], cost.sizes[-1])
        panel.plot(
            sizes, _prices_ms(cost, sizes, cost.p_reference), color=sketch.FITTED, lw=1.4,
            label=f"price, {cost.p_reference:,} cached",
        )  # fmt: skip
        best = [(one.tokens, one.best_ms) for one in estimates.passes if one.best_ms is not None]
        if best:
            panel.plot(*zip(*best, strict=True), color=sketch.INK, lw=1.0, ls=sketch.DOTTED, label="at best: roofline")
        if seen:
            panel.plot([], [], ".", color=sketch.FITTED, alpha=0.6, label="passes of requests")
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        sketch.dress(panel, x="new tokens in the pass", y="one pass, ms")
        panel.legend(loc="upper left")

    alt = "Price of one pass by its new tokens: " + ", ".join(
        f"{size} tokens {price:.1f} ms"
        for size, price in zip(cost.sizes, _prices_ms(cost, cost.sizes, cost.p_reference), strict=True)
    )
    return Plot(
        name=_name("passes", of),
        title=_title("pass_cost: measured and priced", of),
        svg=sketch.sketch(draw, name=_name("passes", of), alt=alt, width_in=sketch.HALF_IN, height_in=_HEIGHT_IN),
        alt=alt,
        shows="Blue: passes timed one after the other, with the range of the middle eight of ten. Orange: the price, "
        "which has the shape of the sweep and the level of real requests, whose passes come after a rest. Flat on the "
        "left, reading the weights is what costs; where it rises with the tokens, arithmetic is.",
        bad="Bad: passes of requests far from the line (then a plan is priced wrongly, and the bound is wide), or long "
        "ranges (the machine was not at rest).",
    )


def draw_first_token(profile: Profile, samples: Samples, *, of: str = "") -> Plot:
    """TTFT by the prompt's new tokens: every request, the median of each length, the price of that pass."""
    groups: dict[int, list[float]] = defaultdict(list)
    for one in profile.requests:
        groups[one.first_tokens].append(ms_from_ns(one.ttft_ns))
    depth = _first_depth(profile, samples)
    lengths = sorted(groups)

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        points = [(length, value) for length in lengths for value in groups[length]]
        shown = [points[at] for at in sketch.thinned([value for _, value in points], most=MOST_POINTS)]
        panel.plot(*zip(*shown, strict=True), ".", ms=3, color=sketch.MEASURED, alpha=0.3, mew=0)
        medians = [median(groups[length]) for length in lengths]
        panel.plot(lengths, medians, "o", ms=4, color=sketch.MEASURED, label="measured, median")
        sizes = list(range(max(1, lengths[0] - 1), lengths[-1] + 2))
        price = _prices_ms(profile.cost, sizes, depth)
        panel.plot(sizes, price, color=sketch.FITTED, lw=1.4, label=f"price of the pass, {depth:,} cached")
        panel.set_ylim(bottom=0)
        panel.locator_params(axis="x", integer=True)
        sketch.dress(panel, x="new tokens of the prompt", y="time to the first token, ms")
        panel.legend(loc="best")

    alt = "Median time to the first token: " + ", ".join(
        f"{length} tokens {median(groups[length]):.1f} ms" for length in _few(lengths)
    )
    return Plot(
        name=_name("first-token", of),
        title=_title("TTFT and the length of the prompt", of),
        svg=sketch.sketch(draw, name=_name("first-token", of), alt=alt, width_in=sketch.HALF_IN, height_in=_HEIGHT_IN),
        alt=alt,
        shows=f"What is new in the prompt decides when the first token comes; what is cached ({depth:,} tokens) is not "
        "run again. Large dots are medians, the line is the price of that pass.",
        bad="Bad: a slope that leaves no room for the longest prompt you allow (shorten what changes, put what changes "
        "last), or a cloud that is far above the line.",
    )


def draw_step(profile: Profile, samples: Samples, *, of: str = "") -> Plot:
    """A decode step by the context behind it."""
    cost, rows = profile.cost, _measured(profile.sweep)
    size = min((row.k for row in rows), default=cost.sizes[0])
    steps = sorted((row for row in rows if row.k == size), key=lambda row: row.p)
    seen = [one for sample in samples.requests for one in sample.passes if one.k == size]

    def draw(figure: Figure) -> None:
        panel = figure.subplots()
        shown = seen[:: max(1, len(seen) // MOST_POINTS)]
        panel.plot(
            [one.p for one in shown], [ms_from_ns(one.elapsed_ns) for one in shown], ".", ms=3, mew=0,
            color=sketch.FITTED, alpha=0.3,
        )  # fmt: skip
        for row in steps:
            values = [ms_from_ns(value) for value in row.elapsed_ns]
            panel.plot([row.p] * len(values), values, ".", ms=4, color=sketch.MEASURED, alpha=0.35, mew=0)
        medians = [ms_from_ns(round(row.median_ns)) for row in steps]
        panel.plot([row.p for row in steps], medians, "o", ms=4, color=sketch.MEASURED, label="sweep, median")
        contexts = [0, max([row.p for row in steps] + [one.p for one in seen], default=cost.p_reference)]
        price = [ms_from_ns(cost.price_ns(size, context)) for context in contexts]
        panel.plot(contexts, price, color=sketch.FITTED, lw=1.4, label="price")
        if seen:
            panel.plot([], [], ".", color=sketch.FITTED, alpha=0.6, label="passes of requests")
        panel.set_ylim(bottom=0)
        sketch.dress(panel, x="context: tokens cached", y=f"pass of {size}, ms" if size > 1 else "one step, ms")
        panel.legend(loc="best")

    deepest = max((row.p for row in steps), default=cost.p_reference)
    more_ms = ms_from_ns(round(deepest * cost.per_cached_ns))
    slower = f"{more_ms:.2g} ms more behind {deepest:,} than behind none" if more_ms else "no slower for the context"
    alt = f"A pass of {size} new tokens: " + ", ".join(
        f"{row.p:,} cached {row.median_ns / 1e6:.1f} ms" for row in steps
    ) + f"; {slower}."  # fmt: skip
    return Plot(
        name=_name("step", of),
        title=_title("A step and its context", of),
        svg=sketch.sketch(draw, name=_name("step", of), alt=alt, width_in=sketch.HALF_IN, height_in=_HEIGHT_IN),
        alt=alt,
        shows=f"The smallest pass ({size} new token{'s' if size > 1 else ''}) behind more and more cached ones: "
        f"{slower}.",
        bad="Bad: a steep line. Then reading the cache is what costs, and a shorter prefix is worth more than a "
        "smaller model.",
    )


def _name(name: str, of: str) -> str:
    """One that no other model's plot has."""
    return "-".join([name, *re.findall(r"\w+", of)])


def _title(title: str, of: str) -> str:
    return f"{title} (plan {of})" if of else title


def _measured(sweep: Sequence[PassTimes]) -> list[PassTimes]:
    return [row for row in sweep if row.elapsed_ns]


def _by_depth(rows: Sequence[PassTimes]) -> Mapping[int, list[PassTimes]]:
    """The deepest first. Depths that are the same but for a few tokens are one: a size may be rounded."""
    groups: dict[int, list[PassTimes]] = {}
    for row in sorted(rows, key=lambda row: -row.p):
        depth = next((depth for depth in groups if depth - row.p <= _SAME_DEPTH), row.p)
        groups.setdefault(depth, []).append(row)
    return {depth: sorted(group, key=lambda row: row.k) for depth, group in groups.items()}


def _by_size(samples: Samples) -> Mapping[int, list[float]]:
    seen: dict[int, list[float]] = defaultdict(list)
    for sample in samples.requests:
        for one in sample.passes:
            seen[one.k].append(ms_from_ns(one.elapsed_ns))
    return seen


def _first_depth(profile: Profile, samples: Samples) -> int:
    """How much is cached before the prompt: as requests had it, else the middle depth of the sweep."""
    seen = [sample.passes[0].p for sample in samples.requests if sample.passes]
    depths = sorted({row.p for row in profile.sweep}) or [profile.cost.p_reference]
    return round(median(seen)) if seen else depths[len(depths) // 2]


def _prices_ms(cost: PassCost, sizes: Sequence[int], cached: int) -> list[float]:
    return [ms_from_ns(cost.price_ns(size, cached)) for size in sizes]


def _curve(low: int, high: int) -> list[int]:
    """Sizes enough for a smooth line."""
    return sorted({round(low * (high / low) ** (at / 60)) for at in range(61)})


def _few(values: Sequence[int]) -> Sequence[int]:
    return values[:: max(1, len(values) // 8)]
