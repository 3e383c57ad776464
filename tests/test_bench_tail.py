"""The shape of a tail: below 0 it ends, at 0 it is exponential, above 0 it is heavy."""

from __future__ import annotations

import numpy as np
import pytest

from edgeguard.bench.calibration.tail import gpd_shape


@pytest.mark.parametrize("shape", [-0.4, 0.0, 0.3])
def test_the_shape_of_a_generalised_pareto_tail_is_found(shape: float) -> None:
    uniform = np.random.default_rng(1).random(200_000)
    samples = -np.log(uniform) if shape == 0 else (uniform**-shape - 1) / shape
    found = gpd_shape(samples.tolist())
    assert found == pytest.approx(shape, abs=0.06)


@pytest.mark.parametrize("samples", [[], [1.0] * 1_000, [float(i) for i in range(100)]])
def test_too_few_excesses_or_none_say_nothing(samples: list[float]) -> None:
    assert gpd_shape(samples) is None
