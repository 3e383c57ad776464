"""What an endpoint's streaming is worth: time to first token and time per output token, over many requests.

One request at a time, each sent when the one before has ended. The same prompt each time is what a robot does, and its
endpoint may answer it from a cache; with ``cold`` every prompt begins otherwise, so that no cache helps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgeguard.bench.endpoint.completion import Completion
from edgeguard.bench.endpoint.endpoint import Endpoint
from edgeguard.bench.percentile import percentile
from edgeguard.clock import NS_PER_S
from edgeguard.model.progress import Progress, silent

SHARES = {"p50": 0.5, "p95": 0.95, "max": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRates:
    """The completions that counted, in their order."""

    completions: tuple[Completion, ...]

    @property
    def stated(self) -> bool:
        """Whether the endpoint has said each time how many tokens there were."""
        return all(one.stated for one in self.completions)

    @property
    def mean_tokens(self) -> float:
        return sum(one.tokens for one in self.completions) / len(self.completions)

    @property
    def tokens_per_s(self) -> float:
        """After the first token, over all requests."""
        decoding = [one for one in self.completions if one.tokens > 1]
        spent_ns = sum(one.last_ns - one.first_ns for one in decoding)
        return sum(one.tokens - 1 for one in decoding) * NS_PER_S / spent_ns if spent_ns else 0.0

    def figures_ns(self) -> dict[str, dict[str, float]]:
        """By what is waited for, its percentiles; time per output token is missing when every answer had one token."""
        rows = {
            "time to first token": [float(one.first_token_ns) for one in self.completions],
            "time per output token": [one.per_token_ns for one in self.completions if one.per_token_ns is not None],
            "whole request": [float(one.total_ns) for one in self.completions],
        }
        return {
            name: {share: percentile(values, part) for share, part in SHARES.items()}
            for name, values in rows.items()
            if values
        }


def measure_endpoint(
    endpoint: Endpoint,
    *,
    prompt: str,
    max_tokens: int,
    requests: int,
    warm_up: int,
    cold: bool = False,
    extra: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> EndpointRates:
    """``warm_up`` requests that do not count, then ``requests`` that do."""
    completions = []
    for number in range(warm_up + requests):
        phase, done, total = ("asking", number - warm_up, requests)
        if number < warm_up:
            phase, done, total = ("warming", number, warm_up)
        progress(phase, done, total)
        text = f"({number}) {prompt}" if cold else prompt
        completion = endpoint.ask(text, max_tokens=max_tokens, extra=extra or {})
        if number >= warm_up:
            completions.append(completion)
    progress("asking", requests, requests)
    return EndpointRates(completions=tuple(completions))
