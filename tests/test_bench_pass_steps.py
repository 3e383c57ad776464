"""A made-up curve of passes: where padding or splitting would pay is found, with the figure, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeguard.bench.speed.pass_steps import Step, find_steps


def linear(tokens: int) -> float:
    return 3.0 + 0.6 * tokens


def tiles_of_8(tokens: int) -> float:
    """Whole tiles, and one that is not whole costs like two."""
    return 1.0 + 4.0 * (tokens // 8) + (8.0 if tokens % 8 else 0.0)


def steep_from_33(tokens: int) -> float:
    return linear(tokens) * (2.0 if tokens > 32 else 1.0)


@pytest.mark.parametrize(
    ("price", "sizes", "expected"),
    [
        (linear, range(2, 65), {}),
        (tiles_of_8, range(2, 17), {**dict.fromkeys(range(2, 8), (8,)), **dict.fromkeys(range(9, 16), (16,))}),
        (steep_from_33, range(30, 41), {}),  # neither half was measured
        (steep_from_33, [4, 32, 36], {36: (32, 4)}),
    ],
    ids=["a straight line", "tiles", "parts that were not measured", "a cliff"],
)
def test_a_step_is_found_with_the_cheapest_way_around_it(
    price: Callable[[int], float], sizes: list[int], expected: dict[int, tuple[int, ...]]
) -> None:
    found = find_steps({size: price(size) for size in sizes})
    assert {step.tokens: step.instead for step in found} == expected


def test_the_dearest_comes_first_and_noise_is_none() -> None:
    found = find_steps({2: 4.0, 3: 8.0, 4: 5.0, 5: 6.0, 6: 5.95})
    assert found == [Step(tokens=3, ms=8.0, instead=(4,), instead_ms=5.0)]
    assert found[0].saved == pytest.approx(3 / 8)


@given(st.dictionaries(st.integers(1, 64), st.floats(0.5, 100), max_size=20))
def test_what_is_said_to_be_cheaper_is(passes_ms: dict[int, float]) -> None:
    found = find_steps(passes_ms)
    assert [step.saved for step in found] == sorted((step.saved for step in found), reverse=True)
    for step in found:
        assert sum(step.instead) >= step.tokens
        assert sum(passes_ms[size] for size in step.instead) == step.instead_ms < step.ms
