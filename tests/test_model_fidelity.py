"""The built graph computes what the GGUF file says, against an independent numpy forward pass over the same file.

KL is the mean over positions, in nats. Level 0 computes in float32 and must equal the reference up to rounding; level 4
quantises the activations to int8 and may move near-ties.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer

from edgeguard.model.options import Activations, Attention, Weights
from tests.graph_runner import run_graph
from tests.real import real_gguf, real_model
from tests.reference import Reference, divergence, log_softmax
from tests.tiny import VOCABULARY, tiny_model

EXACT_KL, FAST_KL, FAST_AGREEMENT = 1e-4, 0.02, 0.9

TEXTS = (
    "The robot drives along the corridor until the range to the wall is less than half a metre, then it stops.",
    "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\nParis is the capital.",
    'Answer in JSON. {"action": "forward", "speed": 0.4, "turn": -0.25, "reason": "the way ahead is clear"}',
    "Water boils at 100 degrees Celsius at sea level; at 3,000 metres it boils at about 90.",
)


TINY_KINDS = [
    {"weight_type": "Q4_1"},
    {"weight_type": "Q4_0"},
    {"weight_type": "Q8_0"},
    {"weight_type": "F16", "embedding_type": "F16"},
    {"weight_type": "F32", "embedding_type": "F32"},
    {"embedding_type": "Q4_1"},  # a tied head with a carry
    {"embedding_type": "Q4_0", "head_type": "Q4_1"},
    {"embedding_type": "F16", "head_type": "F32"},
    {"other_types": {"attn_v": "Q8_0", "ffn_up": "F16", "ffn_down": "Q4_0"}},  # no common product for these
]


@pytest.mark.parametrize("kind", TINY_KINDS, ids=str)
@pytest.mark.parametrize(("accuracy_level", "limit"), [(0, EXACT_KL), (4, FAST_KL)])
def test_every_tensor_type_computes_what_the_file_says(
    tmp_path: Path, kind: dict[str, Any], accuracy_level: int, limit: float
) -> None:
    folder = tiny_model(tmp_path, accuracy_level=accuracy_level, logits="all", **kind)
    tokens = some_tokens(40)
    expected = Reference(path=tmp_path / "tiny.gguf").log_probabilities(tokens)
    assert divergence(expected, log_softmax(run_graph(folder, tokens))).mean() <= limit


FORMS: list[tuple[dict[str, Any], float]] = [
    ({"attention": Attention.PLAIN}, EXACT_KL),
    ({"attention": Attention.PLAIN, "weights": Weights.F32}, EXACT_KL),
    ({"activations": Activations.FLOAT16}, FAST_KL),
    ({"activations": Activations.FLOAT16, "attention": Attention.PLAIN, "weights": Weights.F16}, FAST_KL),
]


@pytest.mark.parametrize(("form", "limit"), FORMS, ids=str)
def test_every_form_that_a_provider_runs_computes_what_the_file_says(
    tmp_path: Path, form: dict[str, Any], limit: float
) -> None:
    """Behind a cache too, for that is where the two kinds of attention differ."""
    folder = tiny_model(tmp_path, accuracy_level=0, logits="all", **form)
    tokens = some_tokens(40)
    expected = Reference(path=tmp_path / "tiny.gguf").log_probabilities(tokens)
    assert divergence(expected, log_softmax(run_graph(folder, tokens))).mean() <= limit
    behind = log_softmax(run_graph(folder, tokens[:17], tokens[17:19], tokens[19:]))
    assert divergence(expected[19:], behind).mean() <= limit


def test_a_pass_behind_a_cache_equals_one_pass_over_everything(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path, logits="all")
    tokens = some_tokens(40)
    whole = run_graph(folder, tokens)
    for cut in (2, 20, 38):
        assert np.array_equal(run_graph(folder, tokens[:cut], tokens[cut:]), whole[cut:])


def test_by_default_there_are_logits_of_the_last_position_only(tmp_path: Path) -> None:
    tokens = some_tokens(12)
    last = run_graph(tiny_model(tmp_path, logits="last"), tokens)
    every = run_graph(tiny_model(tmp_path, logits="all"), tokens)
    assert last.shape == (1, VOCABULARY)
    assert divergence(log_softmax(every[-1:]), log_softmax(last)).item() <= EXACT_KL


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.alone
def test_the_real_model_computes_what_the_file_says(tmp_path: Path) -> None:
    reference = Reference(path=real_gguf(tmp_path))
    exact, fast = (real_model(accuracy_level=level, logits="all") for level in (0, 4))
    tokenizer = Tokenizer.from_file(str(exact / "tokenizer.json"))
    exact_kl, fast_kl, agreed = [], [], []
    for text in TEXTS:
        tokens = tokenizer.encode(text).ids
        expected = reference.log_probabilities(tokens)
        exact_kl.extend(divergence(expected, log_softmax(run_graph(exact, tokens))))
        logits = run_graph(fast, tokens)
        fast_kl.extend(divergence(expected, log_softmax(logits)))
        agreed.extend(expected.argmax(axis=-1) == logits.argmax(axis=-1))
    assert np.mean(exact_kl) <= EXACT_KL
    assert np.mean(fast_kl) <= FAST_KL
    assert np.mean(agreed) >= FAST_AGREEMENT


def some_tokens(count: int) -> list[int]:
    tokens: list[int] = np.random.default_rng(1).integers(0, VOCABULARY, count).tolist()
    return tokens
