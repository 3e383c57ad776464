"""The engine on the real 135M model and its tokenizer: the same properties, where they count."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from edgeguard.engine.engine import CancelledPassError
from edgeguard.engine.language_model import LanguageModel
from edgeguard.errors import PromptError
from tests.engine_setup import load, observation, write_config
from tests.real import real_model

pytestmark = pytest.mark.model

SAID = ("go on", "turn left please", "stop", "is the door open? go there", "")


@pytest.fixture(scope="module")
def folder() -> Path:
    return real_model()


@pytest.fixture(scope="module")
def model(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    loaded = load(write_config(tmp_path_factory.mktemp("config")), folder, full_head=True)
    loaded.warm_up(lambda *_: None)
    return loaded


def test_every_answer_is_written_as_the_tokenizer_itself_writes_it(model: LanguageModel, folder: Path) -> None:
    """Prompt and answer encoded in one piece are the prompt's tokens and the automaton's path."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    prompt = model.prompt.request(observation())
    text = tokenizer.decode(prompt, skip_special_tokens=False)
    actions, speeds = (list(field) for field in model.fields)
    for action, speed in itertools.product(actions, speeds):
        path = model.automaton.encode({"action": action, "speed": speed})
        answer = model.automaton.text(path)
        assert tokenizer.encode(text + answer, add_special_tokens=False).ids == [*prompt, *path]
        assert tokenizer.decode(list(path), skip_special_tokens=False) == answer


@given(words=st.text(max_size=40), front=st.floats(0, 10), left=st.floats(-5, 5))
@settings(max_examples=200, deadline=None)
def test_the_prefix_is_the_same_for_every_observation(
    model: LanguageModel, words: str, front: float, left: float
) -> None:
    request = model.prompt.request({"words": words, "front": front, "left": left, "door": True})
    assert tuple(request[: len(model.prompt.prefix)]) == model.prompt.prefix


def test_no_added_token_can_come_from_outside(model: LanguageModel, folder: Path) -> None:
    added = Tokenizer.from_file(str(folder / "tokenizer.json")).get_added_tokens_decoder()
    assert len(added) == 17
    for token in added.values():
        with pytest.raises(PromptError, match="field 'words'"):
            model.prompt.request(observation(words=f"go {token.content} on"))


@pytest.mark.parametrize("words", SAID)
def test_merged_passes_answer_as_token_by_token_does(model: LanguageModel, words: str) -> None:
    prompt = model.prompt.request(observation(words=words))
    answers = []
    for decode in (model.decoder.decode, lambda prompt: model.decoder.decode_token_by_token(prompt, same_bits=True)):
        model.engine.prefill(model.prompt.prefix)
        model.engine.begin()
        decoded = decode(prompt)
        assert decoded is not None
        answers.append(model.automaton.text(decoded.tokens))
    assert answers[0] == answers[1]


def test_a_kept_prefix_gives_the_bits_of_a_cold_prefill(model: LanguageModel) -> None:
    engine, prompt = model.engine, model.prompt.request(observation())
    engine.begin()
    engine.cache.rewind(0)
    cold = np.array(engine.run(prompt))
    engine.prefill(model.prompt.request(observation(words="something else")))
    engine.cache.keep_common(prompt[:-1])
    assert len(model.prompt.prefix) < len(engine.cache) < len(prompt)
    assert np.array_equal(engine.run(prompt[len(engine.cache) :]), cold)


def test_a_running_pass_ends_soon_after_it_was_cancelled(model: LanguageModel) -> None:
    engine = model.engine
    tokens = [1000 + at for at in range(engine.cache.capacity)]
    engine.begin()
    engine.cache.rewind(0)
    engine.run(tokens)
    whole_s = sum(one.elapsed_ns for one in engine.passes) / 1e9
    engine.begin()
    engine.cache.rewind(0)
    began_s = time.monotonic()
    Timer(whole_s / 10, engine.cancel).start()
    with pytest.raises(CancelledPassError):
        engine.run(tokens)
    assert time.monotonic() - began_s < whole_s * 0.8
    engine.begin()
    assert model.decoder.decode(model.prompt.request(observation())) is not None
