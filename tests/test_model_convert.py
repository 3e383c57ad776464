"""Kinds of weights made of a file's own: each is as close to the file as its bits allow, and exact where it can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType
from numpy.typing import NDArray

from edgeguard.model.convert import convert, values_of
from edgeguard.model.options import Weights
from edgeguard.model.weights import Dense, Matrix, Quantised, from_gguf
from tests.graph_runner import run_graph
from tests.reference import Reference, divergence, log_softmax
from tests.tiny import VOCABULARY, tiny_model

TOKENS: list[int] = np.random.default_rng(1).integers(0, VOCABULARY, 40).tolist()
VALUES = np.random.default_rng(0).normal(0.02, 0.2, (48, 96)).astype(np.float32)


def of_file(type_name: str) -> tuple[Matrix, NDArray[np.float32]]:
    """The matrix as it is read, and what gguf itself makes of it."""
    kind = GGMLQuantizationType[type_name]
    data = gguf.quants.quantize(VALUES, kind)
    return from_gguf(type_name=type_name, data=data), gguf.quants.dequantize(data, kind).astype(np.float32)


@pytest.mark.parametrize("type_name", ["Q4_0", "Q4_1", "Q8_0", "F16", "F32"])
def test_the_values_of_a_matrix_are_those_of_the_file(type_name: str) -> None:
    matrix, expected = of_file(type_name)
    assert np.allclose(values_of(matrix), expected, atol=1e-6)
    dense = convert(matrix, Weights.F32)
    assert isinstance(dense, Dense)
    assert np.allclose(dense.values, expected, atol=1e-6)


@pytest.mark.parametrize(("weights", "steps"), [(Weights.Q8, 254), (Weights.Q4, 15)])
def test_a_rounded_block_is_within_half_a_step(weights: Weights, steps: int) -> None:
    matrix, expected = of_file("F32")
    rounded = convert(matrix, weights)
    assert isinstance(rounded, Quantised)
    off = np.abs(values_of(rounded) - expected).reshape(48, -1, 32).max(axis=-1)
    step = np.abs(rounded.scales)
    # of four bits the side that the largest value is not on has one step less
    assert (off <= step * (0.5 if weights is Weights.Q8 else 1) + 1e-7).all()
    assert np.abs(values_of(rounded) - expected).mean() < 2 * np.abs(VALUES).max() / steps


def test_what_is_wanted_already_is_left_alone() -> None:
    for type_name, weights in (("Q4_0", Weights.Q4), ("Q8_0", Weights.Q8), ("Q4_1", Weights.Q4_EXACT)):
        matrix, _ = of_file(type_name)
        assert convert(matrix, weights) is matrix
        assert convert(matrix, None) is matrix


def test_a_block_of_zeros_stays_zero() -> None:
    for weights in (Weights.Q8, Weights.Q4):
        assert not values_of(convert(Dense(values=np.zeros((2, 64), np.float32)), weights)).any()


VARIANTS: list[tuple[dict[str, Any], float]] = [
    ({"weights": Weights.F32}, 1e-4),
    ({"weights": Weights.F16}, 1e-3),
    ({"weights": Weights.Q8}, 0.02),
    ({"weights": Weights.Q4_EXACT}, 0.02),
    ({"weights": Weights.Q4}, 2.0),
    ({"weights": Weights.Q4_EXACT, "head": Weights.F32}, 0.02),  # a tied head that is stored apart
    ({"head": Weights.Q8, "embedding": Weights.F16}, 0.02),
]


@pytest.mark.parametrize(("kinds", "limit"), VARIANTS, ids=str)
def test_every_variant_runs_and_is_as_close_as_its_bits_allow(
    tmp_path: Path, kinds: dict[str, Any], limit: float
) -> None:
    folder = tiny_model(tmp_path, logits="all", **kinds)
    expected = Reference(path=tmp_path / "tiny.gguf").log_probabilities(TOKENS)
    assert divergence(expected, log_softmax(run_graph(folder, TOKENS))).mean() <= limit
