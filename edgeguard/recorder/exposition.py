"""A flight's metrics under Prometheus' names, as the families of ``prometheus_client``.

Where OpenTelemetry's conventions for generative AI have a name, it is theirs, as its Prometheus exporters write it. A
merged pass brings several tokens, so the time per output token is that of the passes behind the first, per token that
they took in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isinf
from typing import TYPE_CHECKING

from edgeguard.recorder.metrics import FlightMetrics, Histogram
from edgeguard.types import Mode

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

OPERATION = "chat"
PROVIDER = "onnxruntime"


def families(
    metrics: FlightMetrics, *, info: Mapping[str, str], model: str, steps: Mapping[str, int]
) -> Iterator[Metric]:
    """Every metric of the flight; ``info`` labels it, ``steps`` are the recorder's own counts."""
    from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

    yield InfoMetricFamily("edgeguard", "The guard that runs.", value=dict(info))
    mode = GaugeMetricFamily("edgeguard_mode", "1 for the mode that the guard is in.", labels=["mode"])
    for one in Mode:
        mode.add_metric([one.value], float(one.value == metrics.mode))
    yield mode
    yield GaugeMetricFamily("edgeguard_deadline_seconds", "From capture to the wire.", value=metrics.deadline_s)
    yield GaugeMetricFamily("edgeguard_link_up", "1 while a session is agreed.", value=float(metrics.link_up))
    if metrics.hottest_c is not None:
        yield GaugeMetricFamily("edgeguard_board_hottest_celsius", "The hottest sensor.", value=metrics.hottest_c)
    level = GaugeMetricFamily("edgeguard_board_level", "1 for the board's thermal level.", labels=["level"])
    level.add_metric([metrics.level], 1.0)
    yield level
    yield _counter(
        "edgeguard_decisions", "Decisions.", ("source", "mode"), ((key, n) for key, n in metrics.decisions.items())
    )
    for name, about, label, counts in (
        ("edgeguard_causes", "Safe decisions in which a cause held.", "cause", metrics.causes),
        ("edgeguard_events", "Transitions.", "event", metrics.events),
        ("edgeguard_answers", "Answers of each plan of the ladder.", "plan", metrics.plans),
        ("edgeguard_frames", "Frames on the link.", "what", metrics.frames),
        ("edgeguard_recorded_steps", "Steps of the core, written or lost.", "what", steps),
    ):
        yield _counter(name, about, (label,), (((key,), n) for key, n in counts.items()))
    yield _histogram("edgeguard_command_seconds", "From capture to the command's last byte.", metrics.command, {})
    yield _histogram("edgeguard_tick_lateness_seconds", "How late the guard woke.", metrics.lateness, {})
    labels = {
        "gen_ai_operation_name": OPERATION,
        "gen_ai_provider_name": PROVIDER,
        "gen_ai_request_model": model,
    }
    for name, about, histogram in (
        ("gen_ai_server_time_to_first_token_seconds", "Tokenising and the first pass.", metrics.first_token),
        ("gen_ai_server_time_per_output_token_seconds", "Later passes, per token.", metrics.output_token),
    ):
        yield _histogram(name, about, histogram, labels)


def _counter(name: str, about: str, labels: tuple[str, ...], counts: Iterable[tuple[tuple[str, ...], int]]) -> Metric:
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(name, about, labels=labels)
    for key, count in sorted(counts):
        family.add_metric(key, count)
    return family


def _histogram(name: str, about: str, histogram: Histogram, labels: Mapping[str, str]) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    family = HistogramMetricFamily(name, about, labels=list(labels))
    buckets = [("+Inf" if isinf(bound) else f"{bound:.9g}", count) for bound, count in histogram.cumulative()]
    family.add_metric(list(labels.values()), buckets, sum_value=histogram.sum)
    return family
