"""The last answer as a draft: whatever it is, right, wrong, cut short or none, the answer has the same bits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from importlib import resources
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeguard.answer import Draft, Memory
from edgeguard.bench.observations import draw_fields
from edgeguard.config import load_config
from edgeguard.engine.decoder import Decoded, Guide, drafting, undrafting
from edgeguard.engine.language_model import LanguageModel
from tests.choices import choices_of
from tests.engine_setup import load, observation, write_config
from tests.real import real_model
from tests.tiny import tiny_model

ACTIONS = ["forward", "left", "right", "stop"]
ANSWERS = st.fixed_dictionaries(
    {"action": st.sampled_from(ACTIONS), "speed": st.integers(0, 10).map(lambda tenths: Decimal(tenths) / 10)}
)
WORDS = st.text(alphabet=st.characters(codec="latin-1"), max_size=40)


@pytest.fixture(scope="module", params=["last", "all"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    folder = tmp_path_factory.mktemp("tiny")
    return load(write_config(folder), tiny_model(folder, logits=request.param))


def remember(model: LanguageModel, answers: Sequence[dict[str, object]]) -> None:
    """As if these had been the last ones."""
    memory = Memory(automaton=model.automaton)
    for answer in answers:
        memory.note(choices_of(model.automaton, model.automaton.encode(answer)))
    model.decoder.memory = memory


def decoded(model: LanguageModel, prompt: Sequence[int], guide: Guide, situation: Hashable = None) -> Decoded:
    model.engine.begin()
    answer = model.decoder.decode(prompt, situation=situation, guide=guide)
    assert answer is not None
    return answer


@given(words=WORDS, front=st.floats(0, 10), before=st.lists(ANSWERS, max_size=3), reaches=st.lists(st.integers(0, 9)))
@settings(max_examples=150, deadline=None)
def test_any_draft_run_to_anywhere_gives_the_answer_of_none(
    model: LanguageModel, words: str, front: float, before: list[dict[str, object]], reaches: list[int]
) -> None:
    """Tokens, probabilities, and what is cached behind the answer."""
    prompt, engine, left = model.prompt.request(observation(words=words, front=front)), model.engine, list(reaches)

    def anywhere(draft: Draft, *, state: int, pending: int, cached: int) -> int:
        return min(left.pop(0) if left else 9, len(draft.reaches) - 1)

    plain = decoded(model, prompt, undrafting)
    passes, behind = len(engine.passes), np.array(engine.run([5, 9]))
    remember(model, before)
    engine.cache.rewind(len(model.prompt.prefix))
    drafted = decoded(model, prompt, anywhere)
    assert (drafted.tokens, drafted.confidence) == (plain.tokens, plain.confidence)
    assert 0 <= drafted.accepted <= drafted.drafted
    assert len(engine.passes) <= passes
    assert engine.cache.tokens == [*prompt, *plain.tokens[:-1]], "the last choice is decided, not run"
    assert np.array_equal(engine.run([5, 9]), behind)


@given(said=st.lists(st.tuples(st.sampled_from(["go on", "turn left", "stop"]), st.booleans(), st.floats(0, 10))))
@settings(max_examples=50, deadline=None)
def test_in_whatever_order_situations_come_their_drafts_change_no_answer(
    model: LanguageModel, said: list[tuple[str, bool, float]]
) -> None:
    remember(model, [])
    for words, door, front in said:
        seen = observation(words=words, door=door, front=front)
        prompt, situation = model.prompt.request(seen), model.prompt.situation(seen)
        drafted = decoded(model, prompt, drafting, situation)
        plain = decoded(model, prompt, undrafting, situation)
        assert (drafted.tokens, drafted.confidence) == (plain.tokens, plain.confidence)
        again = decoded(model, prompt, drafting, situation)
        assert (again.tokens, len(model.engine.passes)) == (plain.tokens, 1)


def test_an_answer_that_has_not_changed_takes_one_pass(model: LanguageModel) -> None:
    first = decoded(model, model.prompt.request(observation(front=1.0)), undrafting)
    assert (first.drafted, first.accepted) == (0, 0)
    remember(model, [])
    model.decoder.memory.note(choices_of(model.automaton, first.tokens))
    prompt = model.prompt.request(observation(front=1.0))
    model.engine.prefill(model.prompt.prefix)
    again = decoded(model, prompt, drafting)
    assert again.tokens == first.tokens
    (only,) = model.engine.passes
    assert only.k == len(prompt) - only.p + len(first.tokens) - 1
    assert again.drafted == again.accepted == len(first.tokens) - 1 - model.automaton.forced_length(0)


def test_a_wrong_draft_costs_its_tokens_and_nothing_else(model: LanguageModel) -> None:
    prompt = model.prompt.request(observation(front=1.0))
    plain = decoded(model, prompt, undrafting)
    plain_passes = len(model.engine.passes)
    said = {"action": next(one for one in ACTIONS if one not in model.automaton.text(plain.tokens)), "speed": 0}
    remember(model, [said])
    wrong = decoded(model, prompt, drafting)
    assert wrong.tokens == plain.tokens
    assert wrong.drafted > wrong.accepted
    assert len(model.engine.passes) <= plain_passes


def test_where_a_draft_cannot_be_verified_there_is_none(tmp_path: Path) -> None:
    """With the whole head, as a comparison has it; the identity says so, for a calibration holds for one policy."""
    config, folder = write_config(tmp_path), tiny_model(tmp_path)
    whole, cut = load(config, folder, full_head=True), load(config, folder)
    assert whole.identity["drafts"] == "none: the head is whole"
    assert not cut.identity["drafts"].startswith("none")
    prompt = whole.prompt.request(observation())
    for _ in range(2):
        answer = decoded(whole, prompt, drafting)
        assert answer.drafted == 0
    assert answer.tokens == decoded(cut, prompt, drafting).tokens


def test_every_size_that_a_drafted_pass_can_have_lies_between_warmed_ones(model: LanguageModel) -> None:
    longest = model.prompt.longest - len(model.prompt.prefix) + model.answer_tokens
    assert model.pass_sizes[-1] >= longest - 1
    assert model.fits([4] * model.prompt.longest)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_on_the_real_model_no_answer_depends_on_its_draft() -> None:
    """The demo's model and prompt: 500 observations, each with the draft that service would have and without."""
    config = load_config(Path(str(resources.files("edgeguard.demo").joinpath("demo.toml"))))
    model = load(config, real_model())
    accepted = drafted = 0
    for fields in islice(draw_fields(config, seed=5), 500):
        prompt = model.prompt.request(fields)
        draft = decoded(model, prompt, drafting, model.prompt.situation(fields))
        model.engine.cache.rewind(len(model.prompt.prefix))
        plain = decoded(model, prompt, undrafting)
        assert (draft.tokens, draft.confidence) == (plain.tokens, plain.confidence)
        drafted, accepted = drafted + draft.drafted, accepted + draft.accepted
    assert 0 < accepted < drafted
