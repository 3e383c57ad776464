"""What a field costs in the prompt, and what would cost less."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeguard.bench.speed.prompt_costs import FieldCost, advice, field_costs
from edgeguard.budget import PassCost
from edgeguard.cli.main import main
from edgeguard.config import Config, load_config
from edgeguard.engine.model_parts import read_model_parts
from tests.engine_setup import observation, write_config
from tests.tiny import tiny_model

COST = PassCost(sizes=(2, 100), prices_ns=(2e6, 100e6), p_reference=0, per_cached_ns=0.0)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    folder = tmp_path_factory.mktemp("robot")
    return load_config(write_config(folder, ("./model", str(tiny_model(folder)))))


def test_every_field_of_the_prompt_has_its_tokens_and_its_price(config: Config) -> None:
    prompt = read_model_parts(config=config, folder=Path(config.model.folder)).prompt
    free, priced = (field_costs(config, prompt, cost=cost) for cost in (None, COST))
    assert [one.name for one in priced] == ["front", "left", "door", "words"]
    for unpriced, one in zip(free, priced, strict=True):
        assert unpriced.ms is None
        assert one.ms == pytest.approx(one.tokens, rel=0.01), "a millisecond a token"
        assert 0 < one.tokens <= one.most_tokens
    front, _, door, words = priced
    assert front.digit_tokens == pytest.approx(1.0, abs=1.0)
    assert (front.behind, door.behind, words.behind) == (None, "front", "front")
    assert words.digit_tokens is None


def test_the_tokens_of_a_field_are_those_that_the_prompt_has_more(config: Config) -> None:
    prompt = read_model_parts(config=config, folder=Path(config.model.folder)).prompt
    texts = {"front": "1.25", "left": "0.50", "door": "no", "words": "go to the door"}
    assert prompt.length(texts) == len(prompt.request(observation()))
    assert prompt.length({**texts, "words": ""}) < prompt.length(texts)


def test_advice_names_what_saves_most_first() -> None:
    number = FieldCost(name="front", kind="number", tokens=4.0, most_tokens=5, ms=8.0, digit_tokens=1.0, behind=None)
    words = FieldCost(name="said", kind="text", tokens=6.0, most_tokens=40, ms=12.0, digit_tokens=None, behind="front")
    assert advice([number, words]) == [
        "said in front of front saves 6.0 tokens, 12.0 ms while it does not change",
        "front: a decimal less saves 1.0 tokens, 2.0 ms",
    ]


def test_check_says_it_when_asked(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(config.file), "--prompt", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found, [memory] = shown["prompt"], shown["memory"]
    assert memory["weight_bytes"] > 100_000
    assert list(memory["cache_bytes"]) == [""]
    assert [one["name"] for one in found["fields"]] == ["front", "left", "door", "words"]
    assert any("words in front of front" in words for words in found["advice"])
    assert main(["check", str(config.file), "--prompt"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "fields of the prompt" in text
    assert "B of weights, and KV caches of" in text
