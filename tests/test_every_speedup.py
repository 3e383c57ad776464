"""Every speed-up on and off, on the real model: the answers are the same, and so is how sure the model was of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import islice, pairwise, product

import pytest
from peers.task import ROBOT

from edgeguard.bench.observations import draw_fields
from edgeguard.config import load_config
from edgeguard.engine.decoder import Decoded, drafting, undrafting
from edgeguard.engine.language_model import LanguageModel
from tests.engine_setup import load
from tests.real import real_model

REQUESTS = 100
EVERY = 10  # of them, one is asked with all of its prompt cached and with nothing, too

Way = Callable[[list[int], Hashable], Decoded | None]


def ways(model: LanguageModel) -> Mapping[str, Way]:
    """A cut head verifies drafts; token by token needs the whole one."""
    decoder = model.decoder

    def merged(prompt: list[int], situation: Hashable) -> Decoded | None:
        return decoder.decode(prompt, situation=situation, guide=undrafting)

    if model.engine.head.tokens is None:
        return {
            "merged": merged,
            "token by token": lambda prompt, _: decoder.decode_token_by_token(prompt, same_bits=True),
        }

    def drafted(prompt: list[int], situation: Hashable) -> Decoded | None:
        return decoder.decode(prompt, situation=situation, guide=drafting)

    return {"merged": merged, "drafted": drafted}


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_no_speed_up_changes_an_answer() -> None:
    """Drafts, merged passes, the cut head, and what is cached: the prefix, all, or nothing."""
    config = load_config(ROBOT)
    folder = real_model()
    models = {"cut": load(config, folder), "whole": load(config, folder, full_head=True)}
    prefix = len(models["cut"].prompt.prefix)
    accepted = 0
    for at, fields in enumerate(islice(draw_fields(config, seed=7, scene=4), REQUESTS)):
        answers: dict[tuple[str, str, int], Decoded] = {}
        for head, model in models.items():
            prompt = model.prompt.request(fields)
            kept = [prefix, *([] if at % EVERY else [len(prompt), 0])]
            for (name, way), cached in product(ways(model).items(), kept):
                model.engine.begin()
                model.engine.cache.rewind(cached)
                answer = way(prompt, model.prompt.situation(fields))
                assert answer is not None
                answers[head, name, cached] = answer
                accepted += answer.accepted
        texts = {way: model.automaton.text(answer.tokens) for way, answer in answers.items()}
        assert len(set(texts.values())) == 1, f"{fields}: {texts}"
        for one, other in pairwise(answers.values()):
            assert one.confidence == pytest.approx(other.confidence, rel=1e-6)
    assert accepted > REQUESTS, "there were drafts, and they were right at times"
