"""What may be set of a session and of its provider, and what is set where a configuration says nothing.

ONNX Runtime takes an unknown key or option in silence and goes on without it: here each is a ``ConfigError`` that names
the nearest known one, or, of a provider whose options nobody has listed, a ``ProviderError`` once the session is open.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from edgeguard.engine.provider import Provider
from edgeguard.errors import ConfigError, ProviderError

SESSION_DEFAULTS: Mapping[str, str] = {
    "session.force_spinning_stop": "1",  # threads spin during a pass and sleep after it: right for a periodic load
    "session.dynamic_block_base": "4",  # the documented cure for latency variance: threads that finish early get more
    # Denormals are computed in microcode, tens of times slower. It also changes the thread that opens the session.
    "session.set_denormal_as_zero": "1",
}

SESSION_KEYS = (
    *SESSION_DEFAULTS,
    "session.disable_prepacking",
    "session.intra_op.allow_spinning",
    "session.intra_op_thread_affinities",
    "session.qdq_matmulnbits_accuracy_level",
    "session.use_device_allocator_for_initializers",
    "optimization.disable_specified_optimizers",
    "optimization.enable_gelu_approximation",
    "mlas.enable_gemm_fastmath_arm64_bfloat16",
)
"""What a configuration may set (onnxruntime_session_options_config_keys.h, 1.23): keys that change how a pass is
computed. Keys that make the runtime read or write other files are left out on purpose."""


def refuse_unknown_keys(session_options: Mapping[str, str]) -> None:
    """``ConfigError`` with every key that is not one of ``SESSION_KEYS``."""
    problems = []
    for key in session_options:
        if key not in SESSION_KEYS:
            near = difflib.get_close_matches(key, SESSION_KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(SESSION_KEYS)}"
            problems.append(f"model.session_options: unknown key {key!r}, which onnxruntime would pass over; {hint}")
    if problems:
        raise ConfigError(problems)


def chosen_options(provider: Provider, configured: Mapping[str, str], *, threads: int) -> dict[str, str]:
    """The row's options and the configured ones; ``ConfigError`` for one that the provider does not know."""
    names = provider.option_names
    problems = []
    for key in configured:
        if names and key not in names:
            near = difflib.get_close_matches(key, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
            problems.append(f"model.provider_options: {provider.name} has no option {key!r}; {hint}")
    if problems:
        raise ConfigError(problems)
    own = {} if provider.threads_option is None else {provider.threads_option: str(threads)}
    return {**provider.options, **own, **configured}


def check_options(session: Any, provider: Provider, chosen: Mapping[str, str]) -> None:
    """What a provider of unknown options does not report back, it has not understood."""
    if provider.option_names:
        return
    reported = session.get_provider_options().get(provider.ort_name, {})
    unknown = sorted(chosen.keys() - reported.keys())
    if unknown:
        known = ", ".join(sorted(reported)) or "nothing"
        raise ProviderError(
            f"model.provider_options: {provider.name} did not take {', '.join(unknown)}; what it takes: {known}"
        )
