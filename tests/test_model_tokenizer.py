"""The converted tokenizer encodes as the model was trained, and the folder tells the rest of the field how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.real import real_model
from tests.tiny import CHAT_TEMPLATE, CONTROL_TOKENS, tiny_model


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tiny(tiny_folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(tiny_folder / "tokenizer.json"))


@settings(max_examples=200)
@given(text=st.text())
def test_every_text_survives_encoding(tiny: Tokenizer, text: str) -> None:
    if not any(token in text for token in CONTROL_TOKENS):
        assert tiny.decode(tiny.encode(text).ids, skip_special_tokens=False) == text


def test_digits_are_split_one_by_one(tiny: Tokenizer) -> None:
    """``smollm``: every digit is a token of its own, with the space before the first one apart."""
    assert tiny.encode("12 345").tokens == ["1", "2", "Ġ", "3", "4", "5"]


def test_control_tokens_are_special_and_have_the_ids_of_the_file(tiny: Tokenizer) -> None:
    added = tiny.get_added_tokens_decoder()
    assert {number: token.content for number, token in added.items()} == dict(enumerate(CONTROL_TOKENS))
    assert all(token.special for token in added.values())
    assert tiny.encode("<|im_start|>user").ids[0] == 1


def test_the_configuration_carries_template_and_special_tokens(tiny_folder: Path) -> None:
    config = json.loads((tiny_folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["chat_template"] == CHAT_TEMPLATE
    assert (config["bos_token"], config["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    assert config["model_max_length"] == 512


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, world!", ["Hello", ",", "Ġworld", "!"]),
        ("speed 0.25", ["speed", "Ġ", "0", ".", "2", "5"]),
        ("I'll stop.\n", ["I", "'ll", "Ġstop", ".", "Ċ"]),
        ("<|im_start|>user\nhi<|im_end|>", ["<|im_start|>", "user", "Ċ", "hi", "<|im_end|>"]),
    ],
)
def test_the_real_tokenizer_splits_as_its_family_does(text: str, tokens: list[str]) -> None:
    assert Tokenizer.from_file(str(real_model() / "tokenizer.json")).encode(text).tokens == tokens
