"""The adapter that comes with edgeguard: in PEFT's layout, small, the demo's, and good at what it is for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeguard.bench.comparison.evaluation import read_evaluation
from edgeguard.bench.subject import model_folder
from edgeguard.config import load_config
from edgeguard.demo.story import demo_config
from edgeguard.model.adapter import Adapter
from edgeguard.model.adapter_files import find_adapter
from edgeguard.model.progress import silent
from tests.engine_setup import load

NAME = "smollm2-135m-operator"
EVALUATION = Path(__file__).parent.parent / "models" / "eval" / "commands.jsonl"
EVERY = 8
"""Of the evaluation set: enough to see that the adapter is in."""


def test_it_is_small_and_opens_as_any_other_adapter() -> None:
    folder = find_adapter(NAME)
    assert (folder / "adapter_model.safetensors").stat().st_size <= 5_000_000
    assert Adapter(folder=folder).rank == 8


def test_its_card_says_how_it_was_made_and_what_it_is_worth() -> None:
    card = (find_adapter(NAME) / "README.md").read_text(encoding="utf-8")
    for word in ("Apache-2.0", "--seed", "phrases.toml", "models/eval", "Limits"):
        assert word in card


def test_peft_is_told_all_that_it_needs() -> None:
    config = json.loads((find_adapter(NAME) / "adapter_config.json").read_text(encoding="utf-8"))
    assert config["peft_type"] == "LORA"
    assert {"r", "lora_alpha", "target_modules", "layers_to_transform", "bias"} <= config.keys()


@pytest.mark.model
def test_the_demos_model_does_what_is_said() -> None:
    config = load_config(demo_config())
    model = load(config, model_folder(config))
    model.warm_up(silent)
    cases = read_evaluation(EVALUATION, config=config)[::EVERY]
    right = 0
    for case in cases:
        model.engine.begin()
        decoded = model.decoder.decode(model.prompt.request(case.observation))
        assert decoded is not None
        right += case.judge(json.loads(model.automaton.text(decoded.tokens)))["move"]
    assert right >= 0.75 * len(cases)
    assert len(model.prompt.prefix) < 30
