"""The roofline's figures, one by one, and what it says of a request."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.budget import roofline
from edgeguard.budget.roofline import Machine, Model, Part, Work

SEVEN_B = Model(parameters=7e9, weight_bytes=14e9)
MACHINE = Machine(flops=1e14, utilisation=0.4, bandwidth=1e12)


def test_the_time_to_the_first_token_is_the_prompts_arithmetic() -> None:
    assert roofline.first_token_s(SEVEN_B, MACHINE, prompt=1000) == pytest.approx(0.35)
    assert roofline.first_token_s(SEVEN_B, Machine(flops=5e13, bandwidth=1e12), prompt=2000) == pytest.approx(0.56)


@pytest.mark.parametrize(("bits", "rate"), [(16, 71), (8, 143), (4, 286)])
def test_a_step_reads_every_weight(bits: float, rate: float) -> None:
    assert round(roofline.tokens_per_s(SEVEN_B.at_bits(bits), MACHINE)) == rate


def test_thirteen_billion_in_eight_bits_on_two_terabytes_a_second() -> None:
    model, machine = Model(parameters=13e9, weight_bytes=13e9), Machine(flops=1e15, bandwidth=2e12)
    assert roofline.step_s(model, machine) == pytest.approx(6.5e-3)
    assert round(roofline.tokens_per_s(model, machine)) == 154


@pytest.mark.parametrize(("batch", "rate"), [(1, 71), (8, 571), (32, 2286), (64, 2857)])
def test_a_batch_shares_the_weights_until_arithmetic_is_the_limit(batch: int, rate: float) -> None:
    assert round(roofline.tokens_per_s(SEVEN_B, MACHINE, batch=batch)) == rate


def test_a_batch_does_not_share_the_caches() -> None:
    assert round(roofline.tokens_per_s(SEVEN_B, MACHINE, batch=8, cache_bytes=0.5e9)) == 444


def test_the_batch_at_which_memory_and_arithmetic_are_equally_busy() -> None:
    assert roofline.balanced_batch(SEVEN_B, MACHINE) == pytest.approx(40)


def test_the_cache_of_eight_requests_of_4096_tokens() -> None:
    per_token = roofline.kv_bytes(layers=32, kv_heads=32, head_size=128)
    assert per_token == pytest.approx(0.52e6, rel=0.01)
    assert roofline.kv_bytes(layers=32, kv_heads=32, head_size=128, tokens=4096, batch=8) == pytest.approx(
        17e9, rel=0.02
    )


def test_grouped_queries_have_the_cache_of_their_kv_heads() -> None:
    assert roofline.kv_bytes(layers=30, kv_heads=3, head_size=64, bytes_per_element=4) == 46_080


@pytest.mark.parametrize(("load", "times"), [(0.0, 1), (0.5, 2), (0.9, 10)])
def test_a_shared_endpoint_queues(load: float, times: float) -> None:
    assert roofline.time_in_system_s(service_s=0.3, load=load) == pytest.approx(0.3 * times)


@pytest.mark.parametrize("load", [1.0, 1.5, -0.1])
def test_a_load_of_one_or_more_never_ends(load: float) -> None:
    with pytest.raises(ValueError, match="load"):
        roofline.time_in_system_s(service_s=1, load=load)


@pytest.mark.parametrize(
    ("work", "bottleneck", "first"),
    [
        (Work(prompt=4000, output=5), Part.PREFILL, "a smaller model"),
        (Work(prompt=100, output=200), Part.WEIGHTS, "a smaller model"),
        (Work(prompt=100, output=200, cache_bytes=60e9), Part.CACHE, "fewer output tokens"),
        (Work(prompt=100, output=200, batch=256), Part.COMPUTE, "fewer output tokens"),
        (Work(prompt=100, output=200, load=0.9), Part.QUEUE, "less load"),
    ],
)
def test_the_bottleneck_and_what_helps_most(work: Work, bottleneck: Part, first: str) -> None:
    found = roofline.estimate(SEVEN_B, MACHINE, work)
    assert found.bottleneck is bottleneck
    assert found.remedies[0].words.startswith(first)


def test_what_cannot_help_is_not_advised() -> None:
    found = roofline.estimate(SEVEN_B.at_bits(4), MACHINE, Work(prompt=1, output=200))
    words = " ".join(remedy.words for remedy in found.remedies)
    assert "quantise" not in words
    assert "prompt" not in words
    assert "load" not in words


MODELS = st.builds(
    Model, parameters=st.floats(1e6, 1e12), weight_bytes=st.floats(1e6, 1e12), kv_bytes_per_token=st.floats(0, 1e6)
)
MACHINES = st.builds(
    Machine, flops=st.floats(1e9, 1e16), bandwidth=st.floats(1e9, 1e13), utilisation=st.floats(0.01, 1)
)
WORKS = st.builds(
    Work, prompt=st.integers(1, 10_000), output=st.integers(1, 10_000), cached=st.integers(0, 10_000),
    batch=st.integers(1, 512), load=st.floats(0, 0.99),
)  # fmt: skip


@settings(deadline=None)
@given(MODELS, MACHINES, WORKS)
def test_the_parts_add_up_and_every_remedy_saves(model: Model, machine: Machine, work: Work) -> None:
    found = roofline.estimate(model, machine, work)
    assert sum(found.parts.values()) == pytest.approx(found.total_s)
    assert found.service_s == pytest.approx(found.first_token_s + (work.output - 1) * found.step_s)
    saved = [remedy.saved_s for remedy in found.remedies]
    assert saved == sorted(saved, reverse=True)
    assert all(one > 0 for one in saved)
