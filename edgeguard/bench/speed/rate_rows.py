"""Rates as llama-bench's rows: its field names where they mean the same, so that the two can be joined.

Beside them stand ours: percentiles of what somebody waits for, and how busy the machine was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgeguard.bench.percentile import percentile
from edgeguard.bench.speed.rates import Rate
from edgeguard.budget.roofline import Model, billions
from edgeguard.engine.providers import find_provider
from edgeguard.model.inspect import ModelSummary


def rate_row(
    rate: Rate,
    *,
    summary: ModelSummary,
    figures: Model,
    fingerprint: Mapping[str, str],
    provider: str,
    threads: int,
    busy: float,
    time: str,
) -> dict[str, Any]:
    """One test; ``time`` is a label (ISO 8601)."""
    waits = rate.latencies_ns
    return {
        "cpu_info": fingerprint["cpu model"],
        "backends": provider.upper(),
        "model_filename": str(summary.folder),
        "model_type": f"{summary.architecture} {billions(summary.parameters)} {figures.bits:.2g} bits",
        "model_size": summary.stored_bytes,
        "model_n_params": summary.parameters,
        "n_batch": find_provider(provider).longest_pass,
        "n_ubatch": find_provider(provider).longest_pass,
        "n_threads": threads,
        "n_prompt": rate.task.n_prompt,
        "n_gen": rate.task.n_gen,
        "n_depth": rate.task.n_depth,
        "test_time": time,
        "avg_ns": round(rate.avg_ns),
        "stddev_ns": round(rate.stddev_ns),
        "avg_ts": rate.avg_ts,
        "stddev_ts": rate.stddev_ts,
        "samples_ns": list(rate.samples_ns),
        "samples_ts": list(rate.samples_ts),
        "latency_of": "token" if rate.task.n_gen else "prompt",
        "latency_p50_ns": percentile(waits, 0.5),
        "latency_p95_ns": percentile(waits, 0.95),
        "latency_p99_ns": percentile(waits, 0.99),
        "busy": busy,
    }
