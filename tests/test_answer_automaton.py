"""Every path of the automaton says one valid answer, in tokens of the tokenizer, whatever family it is of."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from edgeguard.answer import Automaton, Choice, Field, Grid, compile_answer, parse_answer, read_schema, write_answer
from edgeguard.errors import AnswerError, TokenizerError
from tests.answer_tokenizers import FAMILIES, TokenizerVocabulary, byte_level, vocabulary

CONTEXTS = ["", "assistant\n", "say: ", "right", '{"a":', "ä"]

# Words of a pre-tokenizer are encoded apart: here every path must be the tokenizer's own encoding.
LOCAL = ["byte-level", "byte-level, one digit a token", "byte-level, up to three digits a token"]

FIELDS = read_schema(
    {
        "properties": {
            "turn": {"enum": ["left", "leftover", "right", "höher", "左", 'a "b" \\'], "default": "left"},
            "speed": {"type": "number", "minimum": -0.5, "maximum": 1, "multipleOf": 0.1},
            "a": {"type": "boolean"},
            "kind": {"const": "x"},
            "level": {"type": "integer", "minimum": 0, "maximum": 120},
        }
    }
)


def walk(automaton: Automaton, chance: random.Random) -> tuple[int, ...]:
    """What a decoder does, with a model that answers by chance: greedy among the allowed, forced tokens not asked."""
    tokens = automaton.forced(automaton.start)
    state = automaton.after_forced(automaton.start)
    while not automaton.finished(state):
        scores = {token: chance.random() for token in automaton.allowed(state)}
        token = max(scores, key=scores.__getitem__)
        state = automaton.step(state, token)
        tokens += (token, *automaton.forced(state))
        state = automaton.after_forced(state)
    return tokens


def every_path(automaton: Automaton, state: int = 0) -> Iterator[tuple[int, ...]]:
    if not automaton.allowed(state):
        yield ()
    for token in automaton.allowed(state):
        for rest in every_path(automaton, automaton.step(state, token)):
            yield (token, *rest)


def answers(fields: Sequence[Field]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*fields):
        yield {field.name: value for field, value in zip(fields, values, strict=True)}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_walk_by_chance_says_a_valid_answer_and_decodes_to_it(family: str, context: str) -> None:
    words = vocabulary(family)
    automaton = compile_answer(FIELDS, vocabulary=words, context=context)
    chance = random.Random(f"{family} {context}")
    for _ in range(50):
        path = walk(automaton, chance)
        text = automaton.text(path)
        assert words.decode_batch([path]) == [text]
        values = parse_answer(text, fields=FIELDS)
        assert text == write_answer(values, fields=FIELDS)
        assert automaton.encode(values) == path


@pytest.mark.parametrize("family", FAMILIES)
def test_behind_the_prompts_own_tokens_the_path_adds_exactly_its_text(family: str) -> None:
    words = vocabulary(family)
    for context in CONTEXTS:
        automaton = compile_answer(FIELDS, vocabulary=words, context=context)
        (prompt,) = words.encode_batch(["go " + context])
        path = walk(automaton, random.Random(1))
        alone, together = words.decode_batch([prompt, [*prompt, *path]])
        assert together == alone + automaton.text(path)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_paths_are_all_answers_and_no_other(family: str) -> None:
    fields = (
        Choice(name="a", values=(True, False)),
        Grid(name="n", step=Decimal(1), multiples=range(8, 13)),
        Choice(name="b", values=("left", "leftover", None, Decimal(1), Decimal(12))),
    )
    automaton = compile_answer(fields, vocabulary=vocabulary(family), context="assistant\n", end_tokens=(7, 8))
    said = [automaton.text(path) for path in every_path(automaton)]
    assert len(set(said)) == len(said)
    assert set(said) == {write_answer(values, fields=fields) for values in answers(fields)}


@pytest.mark.parametrize("context", ["", "assistant\n", "say:"])
@pytest.mark.parametrize("family", LOCAL)
def test_where_merging_is_local_every_path_is_the_tokenizers_own_encoding(family: str, context: str) -> None:
    words = vocabulary(family)
    automaton = compile_answer(FIELDS, vocabulary=words, context=context)
    (before,) = words.encode_batch([context])
    chance = random.Random(7)
    for _ in range(200):
        path = walk(automaton, chance)
        (natural,) = words.encode_batch([context + automaton.text(path)])
        assert natural == [*before, *path]


_NAMES = st.text(st.sampled_from('ab_left01 "\\{},:ü左'), min_size=1, max_size=6)
_TEXTS = st.text(st.sampled_from('abeflrt01 "\\{},:\n<|>ü左😀'), max_size=6)
_NUMBERS = st.integers(-1200, 1200) | st.decimals(-20, 20, allow_nan=False, places=2)
_SCALARS = _TEXTS | _NUMBERS | st.booleans() | st.none()


@st.composite
def _grids(draw: st.DrawFn) -> dict[str, Any]:
    step = draw(st.sampled_from([Decimal(one) for one in ("1", "2", "0.1", "0.25", "0.05", "1.5", "10")]))
    kind = "number" if step % 1 else draw(st.sampled_from(["number", "integer"]))
    low, high = draw(st.integers(-150, 150)), draw(st.integers(0, 150))
    schema: dict[str, Any] = {"type": kind, "multipleOf": step}
    schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low * step
    schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = (low + high + 2) * step
    return schema


_FIELD_SCHEMAS = (
    st.lists(_SCALARS, min_size=1, max_size=8, unique_by=lambda value: (isinstance(value, bool), value)).map(
        lambda values: {"enum": values}
    )
    | _SCALARS.map(lambda value: {"const": value})
    | st.just({"type": "boolean"})
    | _grids()
)


@st.composite
def _schemas(draw: st.DrawFn) -> dict[str, Any]:
    properties = draw(st.dictionaries(_NAMES, _FIELD_SCHEMAS, min_size=1, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    name = draw(st.sampled_from(list(properties)))
    if draw(st.booleans()):
        schema["$defs"] = {"there": properties[name]}
        properties[name] = {"$ref": "#/$defs/there", "description": "elsewhere"}
    return schema


@settings(max_examples=150, deadline=None)
@given(
    schema=_schemas(),
    family=st.sampled_from(list(FAMILIES)),
    context=st.sampled_from(CONTEXTS),
    seed=st.integers(0, 2**32),
)
def test_every_answer_of_any_schema_parses_and_validates(
    schema: dict[str, Any], family: str, context: str, seed: int
) -> None:
    fields = read_schema(schema)
    words = vocabulary(family)
    automaton = compile_answer(fields, vocabulary=words, context=context)
    validator = jsonschema.Draft202012Validator(schema)
    chance = random.Random(seed)
    for _ in range(5):
        path = walk(automaton, chance)
        text = automaton.text(path)
        assert words.decode_batch([path]) == [text]
        values = json.loads(text, parse_float=Decimal)
        validator.validate(values)
        assert parse_answer(text, fields=fields) == values
        assert list(values) == list(schema["properties"])


@pytest.mark.parametrize("family", FAMILIES)
def test_forced_runs_are_as_long_as_they_can_be_and_choices_are_real(family: str) -> None:
    automaton = compile_answer(FIELDS, vocabulary=vocabulary(family), context="say: ", end_tokens=[7])
    asked = set()
    todo, seen = [automaton.start], {automaton.start}
    while todo:
        state = todo.pop()
        run, behind = automaton.forced(state), automaton.after_forced(state)
        assert automaton.forced_length(state) == len(run)
        allowed = automaton.allowed(behind)
        assert len(allowed) != 1
        assert list(allowed) == sorted(set(allowed))
        assert automaton.finished(state) == (not allowed)
        asked |= set(allowed)
        for token in run:
            assert automaton.allowed(state) == (token,)
            state = automaton.step(state, token)
        assert state == behind
        reached = {automaton.step(behind, token) for token in allowed} - seen
        todo += reached
        seen |= reached
    assert automaton.alphabet == asked


def test_the_end_of_a_value_that_begins_another_is_a_candidate_like_any_other() -> None:
    words = vocabulary("byte-level, one digit a token")
    fields = (Grid(name="n", step=Decimal(1), multiples=range(1, 13)), Choice(name="b", values=(True, False)))
    automaton = compile_answer(fields, vocabulary=words, context="")
    state = automaton.after_forced(automaton.start)
    (one,) = words.encode_batch(["1"])[0]
    state = automaton.step(state, one)
    assert sorted(words.decode_batch([[token] for token in automaton.allowed(state)])) == [',"', "0", "1", "2"]


def test_a_token_of_several_digits_is_one_choice() -> None:
    words = vocabulary("byte-level, up to three digits a token")
    fields = (Grid(name="n", step=Decimal(1), multiples=range(0, 1000)),)
    automaton = compile_answer(fields, vocabulary=words, context="")
    choices = words.decode_batch([[token] for token in automaton.allowed(automaton.after_forced(automaton.start))])
    assert {"1", "12", "123", "100"} <= set(choices)
    for value in (1, 12, 123, 120, 999):
        (natural,) = words.encode_batch([f'{{"n":{value}}}'])
        assert list(automaton.encode({"n": value})) == natural


def test_where_the_context_would_merge_into_the_answer_it_is_cut_there() -> None:
    words = TokenizerVocabulary(byte_level(use_regex=False, corpus=['say:{"a":true}', 'say:{"a":false}'] * 9))
    fields = (Choice(name="a", values=(True, False)),)
    (before,), (together,) = words.encode_batch(["say:"]), words.encode_batch(['say:{"a":true}'])
    assert together[: len(before)] != before
    automaton = compile_answer(fields, vocabulary=words, context="say:")
    path = automaton.encode({"a": True})
    assert words.decode_batch([[*before, *path]]) == ['say:{"a":true}']


def test_end_tokens_close_every_answer_and_cost_nothing() -> None:
    words = vocabulary("byte-level")
    end = words.tokenizer.token_to_id("<|im_end|>")
    automaton = compile_answer(FIELDS, vocabulary=words, context="", end_tokens=[end])
    path = walk(automaton, random.Random(3))
    assert path[-1] == end
    assert end not in automaton.alphabet
    assert words.decode_batch([path]) == [automaton.text(path) + "<|im_end|>"]


def test_an_answer_that_is_all_forced_needs_no_choice() -> None:
    fields = (Choice(name="a", values=("x",)), Choice(name="b", values=(None,)))
    automaton = compile_answer(fields, vocabulary=vocabulary("byte-level"), context="")
    assert automaton.finished(automaton.start)
    assert automaton.text(automaton.forced(automaton.start)) == automaton.text(()) == '{"a":"x","b":null}'
    assert automaton.alphabet == automaton.pass_sizes == frozenset()


def test_what_is_no_answer_is_not_encoded_and_what_is_no_path_has_no_text() -> None:
    automaton = compile_answer(FIELDS, vocabulary=vocabulary("byte-level"), context="")
    with pytest.raises(AnswerError, match="'turn'"):
        automaton.encode({"turn": "up", "speed": Decimal(1), "a": True, "kind": "x", "level": 1})
    path = walk(automaton, random.Random(5))
    assert automaton.text(path[:-1]) == automaton.text(path)  # only what is forced anyway is missing
    with pytest.raises(ValueError, match="leave choices open"):
        automaton.text(path[:3])
    with pytest.raises(ValueError, match="may not follow"):
        automaton.text((*path, 0))


def _without_bytes(**normal: Any) -> Tokenizer:
    letters = {letter: number for number, letter in enumerate('<abcdefghijklmnopqrstuvwxyz{}":,')}
    tokenizer = Tokenizer(models.BPE(vocab=letters, merges=[], unk_token="<"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    for name, value in normal.items():
        setattr(tokenizer, name, value)
    return tokenizer


@pytest.mark.parametrize(
    ("tokenizer", "name", "values"),
    [
        (_without_bytes(), "turn", ("left", "höher")),  # an unknown letter
        (_without_bytes(), "Turn", ("left", "right")),
        (_without_bytes(normalizer=normalizers.Lowercase()), "turn", ("left", "Right")),
        (_without_bytes(decoder=decoders.Metaspace(replacement="e")), "turn", ("left", "right")),
        (_without_bytes(decoder=decoders.WordPiece()), "turn", ("left", "right")),
    ],
)
def test_a_text_that_does_not_come_back_exactly_is_refused(
    tokenizer: Tokenizer, name: str, values: tuple[str, ...]
) -> None:
    fields = (Choice(name=name, values=values),)
    with pytest.raises(TokenizerError, match=r"cannot write the answer .*reads back as"):
        compile_answer(fields, vocabulary=TokenizerVocabulary(tokenizer), context="")


def test_a_value_that_spells_an_end_token_is_refused() -> None:
    words = vocabulary("byte-level")  # this adapter reads control tokens in text, which the engine's must not
    fields = (Choice(name="a", values=("go", "<|im_end|>")),)
    end = words.tokenizer.token_to_id("<|im_end|>")
    with pytest.raises(TokenizerError, match="its own end tokens"):
        compile_answer(fields, vocabulary=words, context="", end_tokens=[end])


@pytest.mark.parametrize("family", ["byte-level", "byte-level, one digit a token", "sentencepiece BPE, mark first"])
@pytest.mark.parametrize("kind", ["numbers", "words"])
def test_ten_thousand_values_compile_in_under_a_second(family: str, kind: str) -> None:
    many: Field = Grid(name="n", step=Decimal("0.1"), multiples=range(10_000))
    if kind == "words":
        many = Choice(name="n", values=tuple(f"place {number:x} left" for number in range(10_000)))
    fields = (Choice(name="turn", values=("left", "right", "stop")), many, Choice(name="b", values=(True, False)))
    took_s = []
    for _ in range(3):
        begun = time.process_time()
        automaton = compile_answer(fields, vocabulary=vocabulary(family), context="assistant\n")
        took_s.append(time.process_time() - begun)
    assert min(took_s) < 1.0, took_s
    assert len(automaton.shapes) < 100


def test_the_package_brings_neither_numpy_nor_tokenizers_into_a_process() -> None:
    code = "import sys, edgeguard.answer; print(sorted({'numpy', 'tokenizers', 'onnxruntime'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
