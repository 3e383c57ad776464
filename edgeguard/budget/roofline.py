"""The roofline: what a pass can take at best, from five figures. Pure; seconds, bytes, FLOP.

A pass of n tokens multiplies every parameter twice per token and reads every weight once, and with them the caches of
the requests that share it. It takes the longer of the two: ``max(2·P·n / (F·u), (P·b + cache) / W)``. With many tokens
that is the time to the first token, 2·P·n/(F·u); with one it is a decode step, P·b/W. The two meet at
B* = F·u·b/(2W). P: parameters; b: bytes per weight; F: FLOP/s, of which the share u is reached; W: bytes/s.
(Williams, Waterman and Patterson 2009; Pope et al. 2022 for transformers.) Shared endpoints queue as M/M/1.

It is a model: what it leaves out (attention's own arithmetic, launching, sampling) only makes a pass longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """``parameters``: those that every token is multiplied with. ``weight_bytes``: what a pass reads of them."""

    parameters: float
    weight_bytes: float
    kv_bytes_per_token: float = 0.0

    @property
    def bits(self) -> float:
        return 8 * self.weight_bytes / self.parameters

    def at_bits(self, bits: float) -> Model:
        """The same model, quantised otherwise."""
        return replace(self, weight_bytes=self.parameters * bits / 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """``flops`` and ``bandwidth`` per second; ``utilisation``: the share of the FLOP that a prefill really gets."""

    flops: float
    bandwidth: float
    utilisation: float = 1.0

    @property
    def useful_flops(self) -> float:
        return self.flops * self.utilisation


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One request: new ``prompt`` tokens behind ``cached`` ones, ``output`` tokens, among ``batch`` alike.

    ``cache_bytes``: what each request's cache holds, where it is not to be counted from the tokens. ``load``: of the
    endpoint, 0 to 1 (ρ); 0 is a machine of one's own.
    """

    prompt: int
    output: int
    cached: int = 0
    batch: int = 1
    cache_bytes: float | None = None
    load: float = 0.0


class Part(str, Enum):
    """Where a request's time goes."""

    PREFILL = "prefill compute"
    WEIGHTS = "decode bandwidth"
    COMPUTE = "decode compute"
    CACHE = "cache"
    QUEUE = "queueing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One change, and what the request would take with it."""

    words: str
    total_s: float
    saved_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """``total_s`` is one request's time, waiting included; ``parts`` add up to it. ``remedies``: best first.

    ``cache_bytes`` are those of the whole batch, when its prompts are in.
    """

    first_token_s: float
    step_s: float
    tokens_per_s: float
    cache_bytes: float
    balanced_batch: float
    service_s: float
    total_s: float
    parts: Mapping[Part, float]
    remedies: tuple[Remedy, ...] = ()

    @property
    def bottleneck(self) -> Part:
        return max(self.parts, key=lambda part: self.parts[part])


def first_token_s(model: Model, machine: Machine, *, prompt: int) -> float:
    """TTFT: one pass of the prompt."""
    return _pass(model, machine, tokens=prompt).total_s


def step_s(model: Model, machine: Machine, *, batch: int = 1, cache_bytes: float = 0.0) -> float:
    """One token for each of ``batch`` requests, whose caches hold ``cache_bytes`` each."""
    return _pass(model, machine, tokens=batch, cache_bytes=batch * cache_bytes).total_s


def tokens_per_s(model: Model, machine: Machine, *, batch: int = 1, cache_bytes: float = 0.0) -> float:
    """Of all requests together."""
    return batch / step_s(model, machine, batch=batch, cache_bytes=cache_bytes)


def balanced_batch(model: Model, machine: Machine) -> float:
    """B*: so many tokens in a pass keep memory and arithmetic equally busy."""
    return machine.useful_flops * model.weight_bytes / (2 * model.parameters * machine.bandwidth)


def kv_bytes(
    *, layers: int, kv_heads: int, head_size: int, tokens: int = 1, batch: int = 1, bytes_per_element: float = 2.0
) -> float:
    """Keys and values: 2·L·(KV heads × head size)·n·B·b. Grouped queries share the heads of keys and values."""
    return 2 * layers * kv_heads * head_size * tokens * batch * bytes_per_element


def time_in_system_s(*, service_s: float, load: float) -> float:
    """M/M/1: waiting and being served, S / (1 − ρ). ``ValueError`` for a load that is not below 1."""
    if not 0 <= load < 1:
        raise ValueError(f"a load of {load:g} is not in 0…1: at 1 the queue grows without end")
    return service_s / (1 - load)


def effective_machine(model: Model, *, prompt: int, prompt_s: float, step_s: float, context: float) -> Machine:
    """The useful FLOP/s and bytes/s that explain a measured prefill, and a measured step behind ``context`` tokens."""
    read_bytes = model.weight_bytes + context * model.kv_bytes_per_token
    return Machine(flops=2 * model.parameters * prompt / prompt_s, bandwidth=read_bytes / step_s)


def estimate(model: Model, machine: Machine, work: Work) -> Estimate:
    """What the request takes, where that goes, and what would help most."""
    bare = _estimate(model, machine, work)
    remedies = sorted(
        (
            Remedy(words=words, total_s=total_s, saved_s=bare.total_s - total_s)
            for words, total_s in _what_ifs(model, machine, work)
        ),
        key=lambda remedy: remedy.total_s,
    )
    worth = [remedy for remedy in remedies if remedy.saved_s > 0.01 * bare.total_s]
    return replace(bare, remedies=tuple(worth))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    compute_s: float
    weights_s: float
    cache_s: float

    @property
    def total_s(self) -> float:
        return max(self.compute_s, self.weights_s + self.cache_s)

    @property
    def computes(self) -> bool:
        return self.compute_s >= self.weights_s + self.cache_s


def _pass(model: Model, machine: Machine, *, tokens: int, cache_bytes: float = 0.0) -> _Pass:
    return _Pass(
        compute_s=2 * model.parameters * tokens / machine.useful_flops,
        weights_s=model.weight_bytes / machine.bandwidth,
        cache_s=cache_bytes / machine.bandwidth,
    )


def _estimate(model: Model, machine: Machine, work: Work) -> Estimate:
    """The prompt's pass gives the first token, each of the others a step behind half of the answer."""
    given, context = work.cache_bytes, work.cached + work.prompt
    cache_bytes = (context + work.output / 2) * model.kv_bytes_per_token if given is None else given
    prefill = _pass(model, machine, tokens=work.prompt, cache_bytes=work.cached * model.kv_bytes_per_token)
    step = _pass(model, machine, tokens=work.batch, cache_bytes=work.batch * cache_bytes)
    steps = max(0, work.output - 1)
    parts = dict.fromkeys(Part, 0.0)
    for one, count, compute in ((prefill, 1, Part.PREFILL), (step, steps, Part.COMPUTE)):
        if one.computes:
            parts[compute] += count * one.compute_s
        else:
            parts[Part.WEIGHTS] += count * one.weights_s
            parts[Part.CACHE] += count * one.cache_s
    service_s = prefill.total_s + steps * step.total_s
    total_s = time_in_system_s(service_s=service_s, load=work.load)
    parts[Part.QUEUE] = total_s - service_s
    return Estimate(
        first_token_s=prefill.total_s,
        step_s=step.total_s,
        tokens_per_s=work.batch / step.total_s,
        cache_bytes=work.batch * (context * model.kv_bytes_per_token if given is None else given),
        balanced_batch=balanced_batch(model, machine),
        service_s=service_s,
        total_s=total_s,
        parts=parts,
    )


def _what_ifs(model: Model, machine: Machine, work: Work) -> list[tuple[str, float]]:
    """Each figure that somebody can change, halved, so that their effects can be compared."""
    half = replace(
        model,
        parameters=model.parameters / 2,
        weight_bytes=model.weight_bytes / 2,
        kv_bytes_per_token=model.kv_bytes_per_token / 2,
    )
    prompt, output = -(-work.prompt // 2), -(-work.output // 2)
    cases = [
        (f"fewer output tokens: {output} instead of {work.output}", model, replace(work, output=output)),
        (f"a smaller model: {billions(half.parameters)} parameters", half, work),
        (
            f"a shorter prompt, or half of it cached: {prompt} new tokens instead of {work.prompt}",
            model,
            replace(work, prompt=prompt, cached=work.cached + work.prompt - prompt),
        ),
    ]
    bits = next((bits for bits in (8, 4) if bits < 0.9 * model.bits), None)
    if bits is not None:
        cases.append((f"quantise: {bits} bits instead of {model.bits:.3g}", model.at_bits(bits), work))
    if work.load:
        cases.append(
            (f"less load: {work.load / 2:.2g} instead of {work.load:.2g}", model, replace(work, load=work.load / 2))
        )
    return [(words, _estimate(one, machine, what).total_s) for words, one, what in cases]


def billions(parameters: float) -> str:
    """7e9: "7 B", as people count parameters."""
    return f"{parameters / 1e9:.3g} B" if parameters >= 1e9 else f"{parameters / 1e6:.3g} M"
