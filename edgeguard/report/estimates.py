"""The measured prices beside what is possible: rates as people quote them, and where the roofline says time is lost.

Milliseconds and tokens per second. What a profile tells by itself needs no figures of the model; with those, and with
the machine's speed, each pass stands beside its estimate (``edgeguard.budget.roofline``).
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeguard.budget import PassCost, Profile, roofline
from edgeguard.budget.cost import median
from edgeguard.budget.roofline import Estimate, Machine, Model, Work
from edgeguard.clock import NS_PER_S, ms_from_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPass:
    """A pass of ``tokens`` new ones, behind as many cached ones as the cost refers to. ``best_ms`` is the roofline's,
    where the machine and the model are known."""

    name: str
    tokens: int
    price_ms: float
    best_ms: float | None = None

    @property
    def per_s(self) -> float:
        return 1e3 * self.tokens / self.price_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """``turning_tokens``: so many tokens in a pass take as long to multiply as the weights take to read."""

    passes: tuple[PricedPass, ...]
    turning_tokens: float | None
    request: Estimate | None = None


def estimates_of(profile: Profile, *, model: Model | None = None, machine: Machine | None = None) -> Estimates:
    cost = profile.cost
    first = max(1, round(median([one.first_tokens for one in profile.requests])))
    named = {**dict.fromkeys(cost.sizes, ""), cost.sizes[0]: "a step", first: "the usual first pass"}
    passes = tuple(
        PricedPass(
            name=name,
            tokens=tokens,
            price_ms=ms_from_ns(cost.price_ns(tokens, cost.p_reference)),
            best_ms=_best_ms(model, machine, tokens=tokens),
        )
        for tokens, name in sorted(named.items())
    )
    return Estimates(
        passes=passes,
        turning_tokens=_turning_tokens(cost),
        request=None if model is None else _request(profile, model, first=first),
    )


def _best_ms(model: Model | None, machine: Machine | None, *, tokens: int) -> float | None:
    if model is None or machine is None:
        return None
    return 1e3 * roofline.first_token_s(model, machine, prompt=tokens)


def _turning_tokens(cost: PassCost) -> float | None:
    """Where the line through the two largest sizes has grown by the smallest pass; ``None`` when it does not grow."""
    if len(cost.sizes) < 2:
        return None
    per_token_ns = (cost.prices_ns[-1] - cost.prices_ns[-2]) / (cost.sizes[-1] - cost.sizes[-2])
    return cost.prices_ns[0] / per_token_ns if per_token_ns > 0 else None


def _request(profile: Profile, model: Model, *, first: int) -> Estimate:
    """A usual request on the machine that explains the measured passes: its bottleneck, and what would help."""
    cost = profile.cost
    step_ns = cost.price_ns(cost.sizes[0], cost.p_reference)
    rest_ns = median([one.price_ns for one in profile.requests]) - cost.passes_ns([(first, cost.p_reference)])
    machine = roofline.effective_machine(
        model,
        prompt=cost.sizes[-1],
        prompt_s=cost.price_ns(cost.sizes[-1], cost.p_reference) / NS_PER_S,
        step_s=step_ns / NS_PER_S,
        context=cost.p_reference,
    )
    output = 1 + max(0, round(rest_ns / step_ns))
    return roofline.estimate(model, machine, Work(prompt=first, output=output, cached=cost.p_reference))
