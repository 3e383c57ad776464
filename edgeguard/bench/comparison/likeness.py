"""How far a model's probabilities are from those of a reference, on the same prompts and along the same answers.

At each choice of the reference's own answer, both models say how probable each token that may follow is; their
Kullback-Leibler divergence, in nats, is added up over the choices of an answer and averaged over the cases. It shows
what rounding did to a model before it shows in the answers. Loads one model at a time, in this process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from edgeguard.bench.comparison.contest import Contender
from edgeguard.bench.comparison.evaluation import Case
from edgeguard.clock import Clock
from edgeguard.engine.language_model import load_language_model
from edgeguard.model.progress import Progress, silent
from edgeguard.types import Value

Choices: TypeAlias = list[dict[int, float]]
"""Of one answer: at each choice, each token's probability."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """``choices``: of each answer; ``head_rows``: how many rows of the head a pass reads."""

    choices: tuple[Choices, ...]
    head_rows: int


def read_paths(
    contender: Contender,
    answers: Sequence[tuple[Case, Mapping[str, Value]]],
    *,
    clock: Clock,
    progress: Progress = silent,
) -> Paths:
    """The contender's probabilities along these answers."""
    model = load_language_model(config=contender.config, folder=contender.folder, clock=clock, progress=silent)
    phase, choices = f"{contender.name}: probabilities", []
    for done, (case, values) in enumerate(answers):
        progress(phase, done, len(answers))
        prompt = model.prompt.request(case.observation)
        model.engine.begin()
        choices.append(model.decoder.probabilities(prompt, along=model.automaton.encode(values)))
    progress(phase, len(answers), len(answers))
    return Paths(choices=tuple(choices), head_rows=model.engine.head.rows)


def mean_divergence(reference: Paths, other: Paths) -> float | None:
    """In nats per answer; None where the two choose among different tokens (another tokenizer)."""
    pairs = list(zip(reference.choices, other.choices, strict=True))
    if not pairs or any(list(map(set, ours)) != list(map(set, theirs)) for ours, theirs in pairs):
        return None
    return math.fsum(_divergence(p, q) for ours, theirs in pairs for p, q in zip(ours, theirs, strict=True)) / len(
        pairs
    )


def _divergence(p: Mapping[int, float], q: Mapping[int, float]) -> float:
    return math.fsum(share * math.log(share / max(q[token], math.ulp(0.0))) for token, share in p.items() if share > 0)
