"""What each field of the observation costs in the prompt: tokens, and with a profile's prices milliseconds.

Over drawn observations (``edgeguard.bench.observations``): how many tokens the prompt has more than without the field's
text. What is cached of the last prompt is reused up to the first token that differs; so a field that seldom changes
(words, flags) is run again at every decision when it stands behind a number, which changes with every observation.
No model is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from edgeguard.bench.observations import draw_fields
from edgeguard.budget import PassCost
from edgeguard.clock import NS_PER_MS
from edgeguard.config import Config
from edgeguard.config.plant_sections import FieldSpec
from edgeguard.engine.observation_text import format_value, longest_text
from edgeguard.engine.prompt import Prompt

OBSERVATIONS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCost:
    """``tokens`` on average and ``most_tokens``; ``ms`` is ``None`` without prices.

    ``digit_tokens``: fewer on average with one decimal less (``None``: it has none). ``behind``: the number because of
    which it is run again though it seldom changes.
    """

    name: str
    kind: str
    tokens: float
    most_tokens: int
    ms: float | None
    digit_tokens: float | None
    behind: str | None


def field_costs(config: Config, prompt: Prompt, *, cost: PassCost | None) -> list[FieldCost]:
    """Every field that the prompt names, in its order."""
    observations = list(islice(draw_fields(config), OBSERVATIONS))
    texts = [
        {spec.name: format_value(spec, fields.get(spec.name)) for spec in prompt.places} for fields in observations
    ]
    lengths = [prompt.length(one) for one in texts]
    request = round(sum(lengths) / len(lengths)) - len(prompt.prefix)

    def fewer(spec: FieldSpec, others: Sequence[str]) -> float:
        """Tokens saved on average when the field has these texts instead."""
        shorter = (prompt.length({**one, spec.name: other}) for one, other in zip(texts, others, strict=True))
        return sum(length - short for length, short in zip(lengths, shorter, strict=True)) / len(texts)

    def ms(tokens: float) -> float | None:
        if cost is None:
            return None
        per_token_ns = (
            cost.price_ns(2 * request, len(prompt.prefix)) - cost.price_ns(request, len(prompt.prefix))
        ) / request
        return tokens * per_token_ns / NS_PER_MS

    costs, number = [], None
    for spec in prompt.places:
        tokens = fewer(spec, [""] * len(texts))
        digit = None
        if spec.kind == "number" and spec.decimals > 0:
            coarse = replace(spec, decimals=spec.decimals - 1)
            digit = fewer(spec, [format_value(coarse, fields.get(spec.name)) for fields in observations])
        longest = prompt.length({**texts[0], spec.name: longest_text(spec)}) - prompt.length(
            {**texts[0], spec.name: ""}
        )
        costs.append(
            FieldCost(
                name=spec.name,
                kind=spec.kind,
                tokens=tokens,
                most_tokens=longest,
                ms=ms(tokens),
                digit_tokens=digit,
                behind=None if spec.kind == "number" else number,
            )
        )
        if spec.kind == "number" and number is None:
            number = spec.name
    return costs


def advice(costs: Sequence[FieldCost]) -> list[str]:
    """What would make the prompt cheaper, in words; the most that is saved first."""
    found = []
    for one in costs:
        per_token_ms = None if one.ms is None or not one.tokens else one.ms / one.tokens
        if one.digit_tokens is not None and one.digit_tokens >= 0.5:
            found.append(
                (one.digit_tokens, f"{one.name}: a decimal less saves {_saved(one.digit_tokens, per_token_ms)}")
            )
        if one.behind is not None and one.tokens >= 1:
            words = (
                f"{one.name} in front of {one.behind} saves {_saved(one.tokens, per_token_ms)} while it does not change"
            )
            found.append((one.tokens, words))
    return [words for _, words in sorted(found, key=lambda each: -each[0])]


def _saved(tokens: float, per_token_ms: float | None) -> str:
    return f"{tokens:.1f} tokens" + ("" if per_token_ms is None else f", {tokens * per_token_ms:.1f} ms")
