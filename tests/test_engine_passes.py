"""Passes over one cache: the same bits however they are split, room checked before, cancelled from outside."""

from __future__ import annotations

import math
import threading
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeguard.answer import Automaton, Draft
from edgeguard.config import load_config
from edgeguard.engine.decoder import Decoded, LogitsError
from edgeguard.engine.engine import CancelledPassError, Engine
from edgeguard.engine.language_model import LanguageModel
from edgeguard.engine.providers import find_provider
from edgeguard.errors import PromptError
from edgeguard.types import Value
from tests.engine_setup import load, observation, write_config
from tests.tiny import VOCABULARY, tiny_model

TOKENS = st.lists(st.integers(3, VOCABULARY - 1), min_size=4, max_size=60)


@pytest.fixture(scope="module", params=["last", "all"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    """With logits of the last position, as built here, and of every position, as other tools build it; of all tokens,
    so that they can be compared with token by token. That a cut head changes nothing is ``test_engine_head``'s."""
    folder = tmp_path_factory.mktemp("tiny")
    return load(write_config(folder), tiny_model(folder, logits=request.param), full_head=True)


@pytest.fixture
def engine(model: LanguageModel) -> Engine:
    model.engine.cache.rewind(0)
    model.engine.begin()
    return model.engine


def cold(engine: Engine, tokens: list[int]) -> NDArray[np.float32]:
    """The logits behind ``tokens``, computed in one pass from nothing."""
    engine.cache.rewind(0)
    return np.array(engine.run(tokens))


@given(tokens=TOKENS, cuts=st.lists(st.integers(1, 59), max_size=8))
@settings(max_examples=60, deadline=None)
def test_however_tokens_are_split_into_passes_the_bits_are_the_same(
    model: LanguageModel, tokens: list[int], cuts: list[int]
) -> None:
    engine = model.engine
    expected = cold(engine, tokens)
    engine.cache.rewind(0)
    at = [0, *sorted({cut for cut in cuts if 1 < cut < len(tokens)}), len(tokens)]
    for start, end in pairwise(at):
        logits = engine.run(tokens[start:end])
    assert np.array_equal(logits, expected)


def test_a_pass_of_one_token_runs_the_one_before_it_again(engine: Engine) -> None:
    tokens = [5, 9, 17, 30, 11]
    expected = cold(engine, tokens)
    engine.begin()
    engine.cache.rewind(0)
    engine.run(tokens[:4])
    assert np.array_equal(engine.run(tokens[4:]), expected)
    assert [(one.k, one.p) for one in engine.passes] == [(4, 0), (2, 3)]
    assert engine.cache.tokens == tokens
    engine.cache.rewind(4)
    engine.run(tokens[4:], again=False)
    assert (engine.passes[-1].k, engine.passes[-1].p) == (1, 4)


@pytest.mark.parametrize("k", [33, 65, 97])
def test_a_token_alone_behind_whole_tiles_is_given_company(model: LanguageModel, k: int) -> None:
    engine = model.engine
    tokens = [3 + at * 7 % 300 for at in range(k + 10)]
    expected = cold(engine, tokens)
    for parts in ((tokens[:10], tokens[10:]), (tokens[:k], tokens[k:])):
        engine.begin()
        engine.cache.rewind(0)
        for part in parts:
            logits = engine.run(part)
        assert np.array_equal(logits, expected)
        assert all(one.k % 32 != 1 for one in engine.passes)
        assert engine.cache.tokens == tokens


@given(first=TOKENS, second=TOKENS, shared=st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_what_two_prompts_share_is_kept_and_changes_no_bit(
    model: LanguageModel, first: list[int], second: list[int], shared: int
) -> None:
    engine, prompt = model.engine, [*first[:shared], *second]
    expected = cold(engine, prompt)
    engine.cache.rewind(0)
    engine.run(first)
    engine.cache.keep_common(prompt[:-1])
    kept = len(engine.cache)
    assert kept >= min(shared, len(first), len(prompt) - 1)
    assert np.array_equal(engine.run(prompt[kept:]), expected)


def test_a_long_prefix_is_filled_in_several_passes(tmp_path: Path) -> None:
    """Of a configuration whose text may be long, so that the cache is large."""
    config = load_config(write_config(tmp_path, ("max_chars = 40", "max_chars = 200")))
    engine = load(config, tiny_model(tmp_path)).engine
    longest = find_provider("cpu").longest_pass
    tokens = [3 + at * 7 % 300 for at in range(2 * longest + 41)]
    engine.prefill(tokens)
    assert [one.k for one in engine.passes] == [longest, longest, 41]
    warm = np.array(engine.run([7, 8]))
    assert np.array_equal(warm, cold(engine, [*tokens, 7, 8]))
    engine.prefill(tokens)
    assert len(engine.cache) == len(tokens)


def test_more_than_the_cache_holds_is_refused_before_the_pass(engine: Engine) -> None:
    capacity = engine.cache.capacity
    engine.run([4] * (capacity - 3))
    passes = len(engine.passes)
    with pytest.raises(PromptError, match=f"{capacity + 1} tokens do not fit the cache of {capacity}"):
        engine.run([5, 6, 7, 8])
    assert len(engine.passes) == passes
    assert len(engine.run([5, 6, 7])) == VOCABULARY, "as many as it holds do fit"


def test_a_cancelled_pass_leaves_the_cache_as_it_was_and_the_next_request_works(engine: Engine) -> None:
    tokens = [5, 9, 17, 30, 11]
    expected = cold(engine, tokens)
    engine.cache.rewind(3)
    engine.cancel()
    for _ in range(2):  # it latches: the rest of that request is refused as well
        with pytest.raises(CancelledPassError, match="cancelled in a pass of 2 tokens behind 3"):
            engine.run(tokens[3:])
    assert engine.cache.tokens == tokens[:3]
    engine.begin()
    assert np.array_equal(engine.run(tokens[3:]), expected)


def test_a_running_pass_is_cut_short_from_another_thread(engine: Engine) -> None:
    """Long passes, cancelled somewhere inside or between: never a hang, never a pass that is cached in part."""
    longest = find_provider("cpu").longest_pass
    tokens = [4 + at % 300 for at in range(engine.cache.capacity)]
    expected = cold(engine, tokens)
    cut = 0
    for delay_s in np.linspace(0.0, 0.004, 12):
        engine.begin()
        engine.cache.rewind(0)
        timer = threading.Timer(delay_s, engine.cancel)
        timer.start()
        try:
            engine.run(tokens)
        except CancelledPassError:
            cut += 1
            assert len(engine.cache) % longest == 0
            assert engine.cache.tokens == tokens[: len(engine.cache)]
        timer.join()
    assert cut > 0
    engine.begin()
    assert np.array_equal(cold(engine, tokens), expected)


def answers(model: LanguageModel, values: dict[str, Value], *, same_bits: bool = True) -> tuple[str, str]:
    """Merged and token by token, each from the prefix alone."""
    prompt, engine = model.prompt.request(values), model.engine
    texts = []
    for decode in (model.decoder.decode, model.decoder.decode_token_by_token):
        engine.prefill(model.prompt.prefix)
        engine.begin()
        options = {} if decode == model.decoder.decode else {"same_bits": same_bits}
        answer = decode(prompt, **options)
        assert answer is not None
        texts.append(model.automaton.text(answer.tokens))
    return texts[0], texts[1]


@given(
    front=st.floats(0, 10),
    left=st.none() | st.floats(-5, 5),
    door=st.booleans(),
    words=st.text(alphabet=st.characters(codec="latin-1"), max_size=40),
)
@settings(max_examples=60, deadline=None)
def test_merged_passes_answer_as_token_by_token_does(
    model: LanguageModel, front: float, left: float | None, door: bool, words: str
) -> None:
    merged, single = answers(model, {"front": front, "left": left, "door": door, "words": words})
    assert merged == single


def test_an_answer_takes_a_pass_per_choice_and_none_behind_the_last(model: LanguageModel) -> None:
    model.engine.prefill(model.prompt.prefix)
    model.engine.begin()
    prompt = model.prompt.request(observation())
    answer = model.decoder.decode(prompt)
    assert answer is not None
    automaton, state, choices = model.automaton, model.automaton.start, 0
    for token in answer.tokens:
        choices += len(automaton.allowed(state)) > 1
        state = automaton.step(state, token)
    assert automaton.finished(state)
    assert len(model.engine.passes) == choices <= model.answer_passes
    first = model.engine.passes[0]
    assert first.p == len(model.prompt.prefix)
    assert first.k == len(prompt) - first.p + automaton.forced_length(automaton.start)
    assert {one.k for one in model.engine.passes[1:]} <= set(model.pass_sizes)
    assert len(prompt) + len(answer.tokens) <= len(prompt) + model.answer_tokens


def test_confidence_is_the_product_of_what_the_choices_were_given(model: LanguageModel) -> None:
    prompt, decoder = model.prompt.request(observation()), model.decoder
    model.engine.prefill(model.prompt.prefix)
    model.engine.begin()
    answer = decoder.decode(prompt)
    assert answer is not None
    given = decoder.probabilities(prompt, along=answer.tokens)
    assert len(given) == len(model.engine.passes) / 2
    assert all(sum(one.values()) == pytest.approx(1.0) for one in given)
    assert answer.confidence == pytest.approx(np.prod([max(one.values()) for one in given]), rel=1e-4)
    other = model.automaton.encode({"action": "right", "speed": Decimal("0.7")})
    elsewhere = decoder.probabilities(prompt, along=other)
    assert elsewhere[0] == given[0], "the first choice is the same on every path"
    state, tokens = model.automaton.start, list(other)
    for one in elsewhere:
        run = model.automaton.forced_length(state)
        state = model.automaton.after_forced(state)
        assert tuple(one) == model.automaton.allowed(state)
        state, tokens = model.automaton.step(state, tokens[run]), tokens[run + 1 :]


def test_the_same_observation_again_runs_only_what_it_must(model: LanguageModel) -> None:
    prompt = model.prompt.request(observation())
    model.engine.begin()
    first = model.decoder.decode(prompt)
    model.engine.begin()
    assert model.decoder.decode(prompt) == first
    run = model.engine.passes[0]
    assert run.k == 1 + model.automaton.forced_length(model.automaton.start)
    assert run.p == len(prompt) - 1


def test_the_guide_is_asked_before_each_pass_with_what_is_left(model: LanguageModel) -> None:
    asked: list[tuple[int, int, int]] = []

    def give_up(draft: Draft, *, state: int, pending: int, cached: int) -> int | None:
        asked.append((state, pending, cached))
        assert draft.tokens == model.automaton.forced(state)
        return None if len(asked) == 2 else 0

    prompt = model.prompt.request(observation())
    model.engine.prefill(model.prompt.prefix)
    model.engine.begin()
    assert model.decoder.decode(prompt, guide=give_up) is None
    assert len(model.engine.passes) == 1
    start, prefix = model.automaton.start, len(model.prompt.prefix)
    assert asked[0] == (start, len(prompt) - prefix, prefix)
    assert asked[1][1:] == (1, len(prompt) + model.automaton.forced_length(start))


def test_an_answer_without_a_choice_needs_no_pass(tmp_path: Path) -> None:
    change = ('{ enum = ["forward", "left", "right", "stop"] }', '{ const = "stop" }')
    speed = ('{ type = "number", minimum = 0, maximum = 1, multipleOf = 0.1 }', "{ const = 0.5 }")
    examples = [('action = "forward", speed = 0.4', 'action = "stop", speed = 0.5')]
    examples += [('action = "left", speed = 0.0', 'action = "stop", speed = 0.5')]
    model = load(write_config(tmp_path, change, speed, *examples), tiny_model(tmp_path))
    answer = model.decoder.decode(model.prompt.request(observation()))
    assert answer == Decoded(tokens=(), confidence=1.0)
    assert model.automaton.text(answer.tokens) == '{"action":"stop","speed":0.5}'
    assert model.answer_passes == 0


def test_logits_that_are_no_numbers_are_an_error_not_an_answer(model: LanguageModel, tmp_path: Path) -> None:
    from edgeguard.engine.decoder import _likeliest

    token, probability = _likeliest([7, 8, 9, 11], [0.5, 2.0, 2.0, -math.inf])
    assert (token, probability) == (8, pytest.approx(1 / (2 + np.exp(-1.5))))
    for bad in ([1.0, math.nan, 3.0], [math.nan, 1.0], [-math.inf, -math.inf], [1.0, math.inf]):
        with pytest.raises(LogitsError, match="damaged"):
            _likeliest(range(3), bad)


def test_the_cache_is_as_large_as_the_longest_prompt_and_answer_need(model: LanguageModel) -> None:
    capacity = model.engine.cache.capacity
    assert model.prompt.longest + model.answer_tokens <= capacity < model.prompt.longest + model.answer_tokens + 64
    assert model.fits(model.prompt.request(observation(words="x" * 40)))
    assert not model.fits([4] * (capacity - model.answer_tokens + 1))


def test_a_prompt_longer_than_the_model_reads_is_refused_at_the_start(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path, ("max_chars = 40", "max_chars = 600")))
    with pytest.raises(PromptError, match=r"the longest prompt and answer are \d+ tokens, and .* reads 512"):
        load(config, tiny_model(tmp_path))


def test_every_pass_size_that_a_request_makes_lies_between_warmed_ones(model: LanguageModel) -> None:
    model.warm_up(lambda *_: None)
    automaton: Automaton = model.automaton
    assert tuple(model.engine.cache.tokens) == model.prompt.prefix
    assert {max(2, size) for size in automaton.pass_sizes} <= set(model.pass_sizes)
    for words in ("", "go", "x" * 40):
        model.engine.prefill(model.prompt.prefix)
        model.engine.begin()
        model.decoder.decode(model.prompt.request(observation(words=words)))
        assert all(model.pass_sizes[0] <= one.k <= model.pass_sizes[-1] for one in model.engine.passes)


def test_a_sweep_times_each_size_behind_the_prefix(model: LanguageModel) -> None:
    swept = model.sweep([2, 7, 1], repeats=3)
    prefix = len(model.prompt.prefix)
    assert [(one.k, one.p, len(one.elapsed_ns)) for one in swept] == [
        (2, prefix, 3),
        (7, prefix, 3),
        (2, prefix - 1, 3),
    ]
    assert all(elapsed_ns > 0 for one in swept for elapsed_ns in one.elapsed_ns)
    with pytest.raises(PromptError, match="do not fit"):
        model.sweep([model.engine.cache.capacity], repeats=1)
