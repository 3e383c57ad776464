"""What the samples come to: times, rates, the ratio to the best peer with its interval, whose answers are the same.

A ratio is a peer's median time to command over edgeguard's, so that 2 is twice as fast; its interval is the central
95 % over resampled questions, the same for both. The best peer of a stream is the one with the least
median among those that compute with the same weights.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgeguard.bench.bootstrap import ratio_interval
from edgeguard.bench.percentile import percentile
from peers.contest import CHANGED, UNCHANGED, Sample
from peers.ours import Edgeguard
from peers.system import System, Weights

STREAMS = (UNCHANGED, CHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One system. ``ttc_ms`` are (p50, p99) by stream; TTFT and tokens per second are medians of the unchanged command.

    ``same`` is how often it answered as edgeguard did, in both streams; None for edgeguard itself.
    """

    name: str
    settings: str
    ttc_ms: Mapping[str, tuple[float, float]]
    ttft_ms: float
    tokens_per_s: float
    rss_mb: int
    start_s: float
    same: float | None
    weights: Weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """``peer``'s median over ours."""

    peer: str
    value: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    rows: Sequence[Row]
    ratios: Mapping[str, Ratio]
    floor_ms: float
    over_floor: float

    def as_json(self) -> dict[str, Any]:
        """The object that ``--json`` prints; a system's times are those of the unchanged command."""
        return {
            "systems": {
                row.name: {
                    "ttc_ms": dict(zip(("p50", "p99"), row.ttc_ms[UNCHANGED], strict=True)),
                    "ttft_ms": row.ttft_ms,
                    "tokens_per_s": row.tokens_per_s,
                    "rss_mb": row.rss_mb,
                    "start_s": row.start_s,
                    "settings": row.settings,
                }
                for row in self.rows
            },
            "ratio_best_peer": {stream: ratio.value for stream, ratio in self.ratios.items()},
            "floor_ms": self.floor_ms,
            "over_floor": self.over_floor,
            "same_answers": {row.name: row.same for row in self.rows if row.same is not None},
        }


def figures(samples: Sequence[Sample], floors: Sequence[float], systems: Sequence[System]) -> Figures:
    draw = random.Random(1)
    ours = {(one.stream, one.at): one for one in samples if one.system == Edgeguard.name}
    unchanged = [one.elapsed_ms for (stream, _), one in ours.items() if stream == UNCHANGED]
    floor_ms = statistics.median(floors)
    others = {system.name for system in systems if system.weights is Weights.OTHER}
    compared = [one for one in samples if one.system not in others]
    return Figures(
        rows=[_row(system, [one for one in samples if one.system == system.name], ours) for system in systems],
        ratios={
            stream: ratio
            for stream in STREAMS
            if (ratio := _best([one for one in compared if one.stream == stream], draw=draw)) is not None
        },
        floor_ms=floor_ms,
        over_floor=statistics.median(unchanged) / floor_ms,
    )


def _row(system: System, samples: Sequence[Sample], ours: Mapping[tuple[str, int], Sample]) -> Row:
    by_stream = {stream: [one.elapsed_ms for one in samples if one.stream == stream] for stream in STREAMS}
    unchanged = [one for one in samples if one.stream == UNCHANGED]
    is_ours = system.name == Edgeguard.name
    return Row(
        name=system.name,
        settings=system.settings,
        ttc_ms={stream: (statistics.median(times), percentile(times, 0.99)) for stream, times in by_stream.items()},
        ttft_ms=statistics.median(one.first_ms for one in unchanged),
        tokens_per_s=statistics.median(one.tokens / one.elapsed_ms * 1e3 for one in unchanged),
        rss_mb=system.peak_mb(),
        start_s=system.start_s,
        same=None if is_ours else statistics.mean(one.values == ours[one.stream, one.at].values for one in samples),
        weights=system.weights,
    )


def _best(samples: Sequence[Sample], *, draw: random.Random) -> Ratio | None:
    """The ratio to the best peer of one stream; None without peers."""
    times: dict[str, dict[int, float]] = {}
    for one in samples:
        times.setdefault(one.system, {})[one.at] = one.elapsed_ms
    mine = times.pop(Edgeguard.name)
    if not times:
        return None
    peer = min(times, key=lambda name: statistics.median(times[name].values()))
    theirs, asked = times[peer], sorted(mine)

    ours, its = [mine[at] for at in asked], [theirs[at] for at in asked]
    value = statistics.median(its) / statistics.median(ours)
    return Ratio(peer=peer, value=value, interval=ratio_interval(its, ours, draw=draw))
