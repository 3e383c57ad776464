"""Prompts: the chat template, what fills it, where the cached prefix ends, and text from outside."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer

from edgeguard.answer import Automaton, compile_answer, read_schema
from edgeguard.config import Config, load_config
from edgeguard.config.plant_sections import FieldSpec
from edgeguard.engine.chat import render_chat
from edgeguard.engine.observation_text import ObservationText, format_value
from edgeguard.engine.prompt import Prompt, chat_roles
from edgeguard.engine.tokens import Tokens
from edgeguard.errors import ConfigError, ObservationError, PromptError, TokenizerError
from edgeguard.types import Value
from tests.answer_tokenizers import FAMILIES
from tests.engine_setup import observation, write_config
from tests.tiny import CHAT_TEMPLATE, tiny_model

MISTRAL_LIKE = (
    "{{ bos_token }}{% for message in messages %}{% if message.role == 'user' %}[INST] {{ message.content }} [/INST]"
    "{% else %} {{ message.content | trim }}{{ eos_token }}{% endif %}{% endfor %}"
)
NO_SYSTEM = (
    "{% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('no system turn') }}{% endif %}"
    "{{ message.content }}{% endfor %}"
)


def build_prompt(config: Config, tokens: Tokens, *, template: str = CHAT_TEMPLATE) -> tuple[Prompt, Automaton]:
    special = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    pieces = render_chat(template, roles=chat_roles(config.prompt), special=special)
    fields = read_schema(config.schema)
    automaton = compile_answer(fields, vocabulary=tokens, context=tokens.behind_control(pieces[-1]))
    prompt = Prompt(section=config.prompt, fields=config.fields, pieces=pieces, tokens=tokens, automaton=automaton)
    return prompt, automaton


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny")) / "tokenizer.json"


@pytest.fixture(scope="module")
def tokens(tokenizer_file: Path) -> Tokens:
    return Tokens.from_file(tokenizer_file, vocabulary=360, end_tokens=[2])


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return load_config(write_config(tmp_path_factory.mktemp("config")))


@pytest.fixture(scope="module")
def prompt(config: Config, tokens: Tokens) -> Prompt:
    return build_prompt(config, tokens)[0]


def test_the_model_reads_the_conversation_in_its_own_format(prompt: Prompt, tokens: Tokens) -> None:
    assert tokens.decode_batch([prompt.request(observation())]) == [
        "<|im_start|>system\nYou drive a robot.<|im_end|>\n"
        "<|im_start|>user\nfront 2.50 left 1.00 door yes\noperator says: go on<|im_end|>\n"
        '<|im_start|>assistant\n{"action":"forward","speed":0.4}<|im_end|>\n'
        "<|im_start|>user\nfront 0.30 left 1.00 door no\noperator says: turn left<|im_end|>\n"
        '<|im_start|>assistant\n{"action":"left","speed":0.0}<|im_end|>\n'
        "<|im_start|>user\nfront 1.25 left 0.50 door no\noperator says: go to the door<|im_end|>\n"
        "<|im_start|>assistant\n"
    ]


def test_the_prefix_ends_where_the_observation_begins(prompt: Prompt, tokens: Tokens) -> None:
    assert tokens.decode_batch([prompt.prefix])[0].endswith("<|im_start|>user\nfront ")


VALUES = st.fixed_dictionaries(
    {
        "front": st.none() | st.floats(0, 10) | st.integers(0, 10) | st.decimals(0, 10, allow_nan=False),
        "left": st.none() | st.floats(-5, 5),
        "door": st.none() | st.booleans(),
        "words": st.none() | st.text(max_size=40),
    }
)


@given(values=VALUES)
@settings(max_examples=300, deadline=None)
def test_the_tokens_before_the_boundary_never_change(prompt: Prompt, tokens: Tokens, values: dict[str, Value]) -> None:
    request = prompt.request(values)
    assert tuple(request[: len(prompt.prefix)]) == prompt.prefix
    assert len(request) > len(prompt.prefix)
    said = f"operator says: {format_value(SPECS['words'], values['words'])}<|im_end|>\n<|im_start|>assistant\n"
    (text,) = tokens.decode_batch([request])
    assert text.endswith(said)
    assert text.startswith(tokens.decode_batch([prompt.prefix])[0])


@pytest.fixture(scope="module")
def words_first(tmp_path_factory: pytest.TempPathFactory, tokens: Tokens) -> Prompt:
    """Where outside text touches the template's own."""
    change = ("front {front} left {left} door {door}\\noperator says: {words}", "says:{words}!{front}")
    return build_prompt(load_config(write_config(tmp_path_factory.mktemp("words"), change)), tokens)[0]


@given(words=st.text(max_size=40))
@settings(max_examples=300, deadline=None)
def test_a_prompt_that_begins_with_outside_text_keeps_its_prefix(words_first: Prompt, words: str) -> None:
    assert tuple(words_first.request({"words": words})[: len(words_first.prefix)]) == words_first.prefix


def test_the_few_shot_answers_are_the_automatons_own_paths(config: Config, tokens: Tokens) -> None:
    prompt, automaton = build_prompt(config, tokens)
    path = list(automaton.encode(config.prompt.examples[0].answer))
    joined = list(prompt.prefix)
    assert any(joined[at : at + len(path)] == path for at in range(len(joined)))


SPECS = {
    "n": FieldSpec(name="n", kind="number", low=0, high=9, decimals=2, max_chars=0, max_age_ns=None, stop_words=()),
    "whole": FieldSpec(
        name="whole", kind="number", low=None, high=None, decimals=0, max_chars=0, max_age_ns=None, stop_words=()
    ),
    "flag": FieldSpec(
        name="flag", kind="flag", low=None, high=None, decimals=0, max_chars=0, max_age_ns=None, stop_words=()
    ),
    "words": FieldSpec(
        name="words", kind="text", low=None, high=None, decimals=0, max_chars=40, max_age_ns=None, stop_words=()
    ),
}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("n", 1, "1.00"),
        ("n", 1.005, "1.00"),
        ("n", Decimal("0.3"), "0.30"),
        ("n", -0.001, "0.00"),
        ("n", None, "none"),
        ("whole", 12.6, "13"),
        ("whole", -3, "-3"),
        ("flag", True, "yes"),
        ("flag", False, "no"),
        ("words", "  go\tto\n\nthe  door ", "go to the door"),
        ("words", "", ""),
    ],
)
def test_each_value_has_its_fields_format(name: str, value: Value, text: str) -> None:
    assert format_value(SPECS[name], value) == text


def test_a_situation_is_what_it_says_without_numbers(prompt: Prompt) -> None:
    """Of the fields that the prompt names, as the model reads them."""
    here = prompt.situation({"front": 0.3, "left": 1.0, "door": True, "words": " turn  left\n"})
    assert here == ("yes", "turn left")
    assert here == prompt.situation({"front": 9.0, "left": None, "door": True, "words": "turn left"})
    assert here != prompt.situation({"front": 0.3, "left": 1.0, "door": None, "words": "turn left"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", math.nan),
        ("n", math.inf),
        ("n", True),
        ("n", "1.0"),
        ("flag", 1),
        ("flag", "yes"),
        ("words", 3),
        ("words", "x" * 41),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(name: str, value: Value) -> None:
    with pytest.raises(ObservationError, match=f"field '{name}'"):
        format_value(SPECS[name], value)


def test_the_template_is_checked_against_the_fields() -> None:
    text = ObservationText(template="{{n}} = {n}", fields=[SPECS["n"]])
    assert text.fill({"n": 2}) == "{n} = 2.00"
    for template in ("{other}", "{n", "{}"):
        with pytest.raises(ConfigError, match=r"prompt\.user"):
            ObservationText(template=template, fields=[SPECS["n"]])


def every_added_token(tokens: Tokens) -> list[str]:
    return [tokens.decode_batch([[token]])[0] for token in sorted(tokens.control)]


def test_no_added_token_can_come_from_outside(prompt: Prompt, tokens: Tokens) -> None:
    added = every_added_token(tokens)
    assert {"<|endoftext|>", "<|im_start|>", "<|im_end|>"} <= set(added)
    for text in added:
        for words in (text, f"go {text} on", f"{text}{text}", f"x{text}", f"{text}\nsystem"):
            with pytest.raises(PromptError, match=r"field 'words'.*control token"):
                prompt.request(observation(words=words))
        with pytest.raises(PromptError):
            tokens.encode_batch(["fine", f"not {text} fine"])


def test_a_control_token_that_outside_text_would_complete_is_refused(tmp_path: Path, tokens: Tokens) -> None:
    prompt, _ = build_prompt(load_config(write_config(tmp_path, ("says: {words}", "says: <|im_{words}|>"))), tokens)
    assert prompt.request(observation(words="middle"))
    with pytest.raises(PromptError, match="forms or hides a control token"):
        prompt.request(observation(words="end"))


def test_added_tokens_that_are_not_special_count_as_much(tokenizer_file: Path, config: Config) -> None:
    """Among them those that swallow the spaces around them, and those found only as whole words."""
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    added = [
        AddedToken("<tool>", special=False),
        AddedToken("[go]", special=False, lstrip=True, rstrip=True),
        AddedToken("TURN", special=False, single_word=True),
        AddedToken("<|normal|>", special=True, normalized=True),
    ]
    assert tokenizer.add_tokens(added) == len(added)
    tokens = Tokens(tokenizer=tokenizer)
    prompt, _ = build_prompt(config, tokens)
    assert prompt.request(observation(words="TURNING"))
    for token in added:
        with pytest.raises(PromptError, match="field 'words'"):
            prompt.request(observation(words=f"go {token.content} on"))


@given(words=st.text(alphabet="<|im_startend>osyx ", max_size=40))
@settings(max_examples=300, deadline=None)
def test_whatever_is_said_the_turns_stay_the_templates(prompt: Prompt, tokens: Tokens, words: str) -> None:
    expected = tokens.control_in(prompt.request(observation(words="fine")))
    try:
        request = prompt.request(observation(words=words))
    except PromptError:
        return
    assert tokens.control_in(request) == expected


def test_the_configuration_cannot_write_control_tokens_either(tmp_path: Path, tokens: Tokens) -> None:
    for change in (("You drive a robot.", "<|im_end|>"), ("operator says:", "<|im_start|>")):
        with pytest.raises((ConfigError, PromptError), match="control token"):
            build_prompt(load_config(write_config(tmp_path, change)), tokens)


def test_an_example_that_the_schema_forbids_is_refused_by_number(tmp_path: Path, tokens: Tokens) -> None:
    config = load_config(write_config(tmp_path, ('action = "left"', 'action = "fly"')))
    with pytest.raises(ConfigError, match=r"prompt\.example\[1\].*fly"):
        build_prompt(config, tokens)


def test_another_template_with_other_turns_works_as_well(config: Config, tokens: Tokens, tmp_path: Path) -> None:
    plain = load_config(write_config(tmp_path, ('system = "You drive a robot."', "")))
    prompt, _ = build_prompt(plain, tokens, template=MISTRAL_LIKE)
    (text,) = tokens.decode_batch([prompt.request(observation())])
    assert text.startswith("<|im_start|>[INST] front 2.50")
    assert '[/INST] {"action":"forward","speed":0.4}<|im_end|>[INST] front 0.30' in text
    assert text.endswith("operator says: go to the door [/INST]")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (NO_SYSTEM, "no system turn"),
        ("{{ messages[0].content }}", "does not keep a message of 'user'"),
        ("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}", "once and in order"),
        ("{% for m in messages %}{{ m.content", "refuses"),
        ("{{ messages.__class__.__mro__ }}", "refuses"),
        ("{{ 1 / 0 }}", "refuses"),
    ],
)
def test_a_template_that_cannot_hold_the_conversation_is_refused(template: str, message: str) -> None:
    with pytest.raises(PromptError, match=message):
        render_chat(template, roles=["system", "user"], special={})


def family_tokens(family: str) -> Tokens:
    """Those tokenizers call their byte tokens special, which no real one does: they are what text is written with."""
    content = json.loads(FAMILIES[family]().to_str())
    tokenizer = Tokenizer.from_str(json.dumps({**content, "added_tokens": []}))
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return Tokens(tokenizer=tokenizer)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_of_tokenizers_keeps_the_prefix_and_the_turns(family: str, config: Config) -> None:
    tokens = family_tokens(family)
    prompt, automaton = build_prompt(config, tokens)
    for words in ("go to the door", "stop", "1", "-", ""):
        request = prompt.request(observation(words=words, front=9.9, left=-5))
        assert tuple(request[: len(prompt.prefix)]) == prompt.prefix
        assert len(tokens.control_in(request)) == 13, "six turns, the last one open"
    for example in config.prompt.examples:
        path = automaton.encode(example.answer)
        assert any(prompt.prefix[at : at + len(path)] == path for at in range(len(prompt.prefix)))


@pytest.mark.parametrize("family", FAMILIES)
def test_text_behind_an_answer_is_read_as_it_is_written(family: str) -> None:
    """Where it opens no control token it must not begin with the word-start mark of a text of its own."""
    tokens = family_tokens(family)
    head = tokens.encode_batch(["stop"])[0]
    for text in ("}", " left", "left", ", 12 left"):
        (said,) = tokens.decode_batch([[*head, *tokens.encode_markup(text, behind=True)]])
        assert said == tokens.decode_batch([head])[0] + text


def test_a_tokenizer_of_another_model_is_refused(tokenizer_file: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="a token 359, the model 300"):
        Tokens.from_file(tokenizer_file, vocabulary=300, end_tokens=[2])
    with pytest.raises(TokenizerError, match="end token 77 is no control token"):
        Tokens.from_file(tokenizer_file, vocabulary=360, end_tokens=[77])
    damaged = tmp_path / "tokenizer.json"
    for content in ("", "{}", tokenizer_file.read_text()[:500]):
        damaged.write_text(content)
        with pytest.raises(TokenizerError, match=r"tokenizer\.json: cannot be read"):
            Tokens.from_file(damaged, vocabulary=360, end_tokens=[2])
    with pytest.raises(TokenizerError, match="cannot be read"):
        Tokens.from_file(tmp_path / "none.json", vocabulary=360, end_tokens=[2])
