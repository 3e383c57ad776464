"""Passes of fixed sizes, over a cache and a mask that are always as long: the same answers, and nothing else cached."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgeguard.clock import SystemClock
from edgeguard.config import load_config
from edgeguard.engine.cache import WindowCache
from edgeguard.engine.engine import Engine
from edgeguard.engine.language_model import LanguageModel
from edgeguard.engine.model_parts import fixed_shapes, read_model_parts
from edgeguard.engine.placement import profiled
from edgeguard.engine.providers import find_provider, provider_of
from edgeguard.engine.session import open_session
from edgeguard.engine.shapes import AnySize, FixedShapes
from edgeguard.errors import ModelError, PromptError, ProviderError
from edgeguard.model.options import Attention
from tests.engine_setup import apart, load, observation, write_config
from tests.test_engine_layouts import MODELS
from tests.tiny import VOCABULARY, tiny_model

GROUPED, PLAIN = Attention.GROUPED, Attention.PLAIN
TOKENS = st.lists(st.integers(3, VOCABULARY - 1), min_size=2, max_size=150)
SHAPES = FixedShapes(sizes=(2, 4, 8, 16), capacity=64)


def shaped(folder: Path, model: Path, shapes: str, *, full_head: bool = False) -> LanguageModel:
    change = f'folder = "./model"\nshapes = "{shapes}"'
    return load(write_config(folder, ('folder = "./model"', change)), model, full_head=full_head)


@pytest.fixture(scope="module", params=[GROUPED, PLAIN])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[LanguageModel, ...]:
    """The same model with passes of any size, of some, and of one."""
    folder = tmp_path_factory.mktemp("tiny")
    exact = request.param is GROUPED  # else sums differ in the last bit, which activations of 8 bits may blow up
    model = tiny_model(folder, attention=request.param, accuracy_level=4 if exact else 0)
    return tuple(shaped(folder, model, shapes) for shapes in ("any", "sizes", "one"))


@given(k=st.integers(1, 200), cached=st.integers(0, 60), single=st.booleans())
def test_every_pass_has_one_of_the_sizes_and_all_tokens_are_run_once(k: int, cached: int, single: bool) -> None:
    shapes = FixedShapes(sizes=SHAPES.sizes[-1:] if single else SHAPES.sizes, capacity=512)
    while k:
        try:
            count, again = shapes.next_pass(k, cached=cached)
        except PromptError:
            assert k < shapes.sizes[0] - cached, "too few tokens in all"
            return
        assert count + again in shapes.sizes
        assert 0 < count <= k
        assert 0 <= again <= cached
        k, cached = k - count, cached + count


@given(k=st.integers(1, 200), cached=st.integers(0, 3))
def test_where_any_size_will_do_there_is_one_pass_but_for_the_first_tokens_of_all_and_long_ones(
    k: int, cached: int
) -> None:
    count, again = AnySize(smallest=2, longest=96).next_pass(k, cached=cached)
    assert again <= min(1, cached)
    assert count == min(k, 96) or (count, cached) == (2, 0)


@pytest.mark.parametrize(
    ("longest", "prefix", "single", "sizes"),
    [
        (20, 100, False, (2, 4, 8, 16, 32)),
        (20, 100, True, (32,)),
        (20, 30, True, (16,)),  # no longer than the prompt's fixed part
        (2, 100, False, (2,)),
    ],
)
def test_sizes_are_powers_of_two_for_the_longest_first_pass(
    longest: int, prefix: int, single: bool, sizes: tuple[int, ...]
) -> None:
    made = FixedShapes.powers(
        smallest=2, longest=longest, prefixes=[prefix, 120], capacity=128, context=512, single=single
    )
    assert made == FixedShapes(sizes=sizes, capacity=max(128, 120 + sizes[-1]))


def test_no_size_is_larger_than_what_the_model_reads_behind_the_prefix() -> None:
    made = FixedShapes.powers(smallest=2, longest=64, prefixes=[100], capacity=120, context=128, single=True)
    assert made == FixedShapes(sizes=(16,), capacity=120)


def test_a_prompt_shorter_than_any_pass_is_refused() -> None:
    with pytest.raises(PromptError, match="fixed part has 1 tokens, and a pass at least 2"):
        FixedShapes.powers(smallest=2, longest=9, prefixes=[1, 9], capacity=64, context=512, single=False)


@given(tokens=TOKENS, cuts=st.lists(st.integers(1, 149), max_size=6))
@example(tokens=[223, 22, 10, 152, 3], cuts=[])  # the plain graph's sums in another order
@settings(max_examples=30, deadline=None)
def test_passes_of_fixed_sizes_give_what_passes_of_any_size_give(
    pair: tuple[LanguageModel, ...], tokens: list[int], cuts: list[int]
) -> None:
    free, sizes, _ = pair
    said = []
    for model in (free, sizes):
        model.engine.cache.rewind(0)
        model.engine.begin()
        at = [0, *sorted({cut for cut in cuts if 1 < cut < len(tokens)}), len(tokens)]
        for start, end in pairwise(at):
            logits = model.engine.run(tokens[start:end])
        said.append(np.array(logits))
        assert model.engine.cache.tokens == tokens
    if isinstance(sizes.engine.cache, WindowCache):
        np.testing.assert_allclose(*said, atol=1e-4)
    else:
        assert np.array_equal(*said)
    assert {one.k for one in sizes.engine.passes} <= set(sizes.pass_sizes)


def test_commands_are_the_same_and_every_pass_is_one_that_was_warmed_up(pair: tuple[LanguageModel, ...]) -> None:
    answers = []
    for model in pair:
        model.warm_up(lambda *_: None)
        said = []
        for words in ("go on", "turn left", "stop", "x" * 40, "go on"):
            model.engine.begin()
            decoded = model.decoder.decode(model.prompt.request(observation(words=words)))
            assert decoded is not None
            said.append(model.automaton.text(decoded.tokens))
            if model.fixed_sizes:
                assert {one.k for one in model.engine.passes} <= set(model.pass_sizes)
        answers.append(said)
    assert answers[0] == answers[1] == answers[2]


def test_a_session_of_one_shape_takes_no_other(pair: tuple[LanguageModel, ...]) -> None:
    *_, one = pair
    (size,) = one.pass_sizes
    shapes = {node.name: node.shape for node in one.engine._session.get_inputs()}
    assert shapes["input_ids"] == [1, size]
    assert all(isinstance(length, int) for shape in shapes.values() for length in shape)
    one.engine.cache.rewind(0)
    with pytest.raises(PromptError, match=f"1 tokens behind 0 are fewer than a pass has here, {size}"):
        one.engine.run([5])


def test_going_back_in_a_window_copies_nothing_and_what_was_behind_is_not_seen(
    pair: tuple[LanguageModel, ...],
) -> None:
    _, sizes, _ = pair
    engine, first, second = sizes.engine, list(range(5, 45)), list(range(60, 70))
    engine.cache.rewind(0)
    engine.run([*first, *second])
    fresh = np.array(engine.run([7, 8]))
    engine.cache.rewind(len(first))
    engine.run(list(range(100, 150)))
    engine.cache.rewind(len(first))
    engine.run(second)
    np.testing.assert_allclose(engine.run([7, 8]), fresh, atol=1e-5)
    if isinstance(engine.cache, WindowCache):
        assert engine.cache.mask(k=2).sum() == len(engine.cache) + 2


@pytest.mark.parametrize("layout", ["genai", "optimum/model.onnx"])
@pytest.mark.parametrize("shapes", ["sizes", "one"])
def test_folders_of_other_tools_run_in_fixed_shapes(layout: str, shapes: str, tmp_path: Path) -> None:
    commands = []
    for asked in ("any", shapes):
        model = shaped(tmp_path, MODELS / layout, asked)
        model.warm_up(lambda *_: None)
        decoded = model.decoder.decode(model.prompt.request(observation()))
        assert decoded is not None
        commands.append(model.automaton.text(decoded.tokens))
    assert commands[0] == commands[1]


def test_a_graph_that_counts_positions_by_the_length_of_its_cache_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"decoder_model_merged.onnx: has no input position_ids"):
        shaped(tmp_path, MODELS / "optimum" / "decoder_model_merged.onnx", "sizes")


def test_what_is_captured_has_one_address_for_each_size_and_gives_the_same_bits(tmp_path: Path) -> None:
    """The device is the CPU here, which replays nothing; inputs and logits come and go as for a graph that is."""
    config = load_config(write_config(tmp_path))
    parts = read_model_parts(config=config, folder=tiny_model(tmp_path))
    said = []
    for captures in (False, True):
        row = replace(find_provider("cpu"), shapes="sizes", captures=captures)
        fixed = fixed_shapes(parts, row)
        opened = apart(
            lambda row=row: open_session(
                folder=parts.folder, head=parts.head, provider=row, threads=1, provider_options={}, session_options={}
            )
        )
        assert fixed is not None
        engine = Engine(
            runtime=onnxruntime, session=opened.session, folder=parts.folder, head=parts.head, provider=row,
            capacity=fixed.capacity, clock=SystemClock(), fixed=fixed,
        )  # fmt: skip
        engine.prefill(list(range(5, 60)))
        said.append([np.array(engine.run(tokens)) for tokens in ([7], [8, 9, 10], [11], list(range(70, 90)))])
        said[-1].append(np.array(engine.earlier(5)))
        assert {one.k for one in engine.passes} <= set(fixed.sizes)
    for host, device in zip(*said, strict=True):
        assert np.array_equal(host, device)


@pytest.mark.parametrize(
    ("name", "attention", "mask"),
    [("tensorrt", PLAIN, ("1x194", "1x224")), ("nv_tensorrt_rtx", GROUPED, ("1x192", "1x192"))],
)
def test_what_is_compiled_for_a_range_of_shapes_is_told_all_that_there_are(
    name: str, attention: Attention, mask: tuple[str, str], tmp_path: Path
) -> None:
    parts = read_model_parts(
        config=load_config(write_config(tmp_path)), folder=tiny_model(tmp_path, attention=attention)
    )
    row, fixed = find_provider(name), FixedShapes(sizes=(2, 8, 32), capacity=192)
    options = fixed.range_options(parts.folder, row)
    assert set(options) <= set(row.option_names)
    smallest, usual, largest = (dict(one.split(":") for one in options[key].split(",")) for key in row.range_options)
    assert usual == largest
    assert (smallest["input_ids"], largest["input_ids"]) == ("1x2", "1x32")
    assert (smallest["attention_mask"], largest["attention_mask"]) == mask
    graph = parts.folder.graph
    assert smallest.keys() == largest.keys() == set(graph.inputs)
    assert smallest["past_key_values.0.key"] == largest["past_key_values.0.key"], "the cache is always as long"
    for shapes in (smallest, largest):
        for tensor, sizes in shapes.items():
            known = zip(graph.dimensions[tensor], sizes.split("x"), strict=True)
            assert all(str(dimension) == size for dimension, size in known if isinstance(dimension, int))


@pytest.mark.parametrize(("shapes", "given"), [("any", False), ("sizes", True), ("one", False)])
def test_the_range_is_given_where_there_is_one(shapes: str, given: bool, tmp_path: Path) -> None:
    """To the CPU's provider, which does not take it: what it refuses is what it was told."""
    config = load_config(write_config(tmp_path))
    parts = read_model_parts(config=config, folder=tiny_model(tmp_path))
    row = replace(find_provider("cpu"), shapes=shapes, range_options=("least", "usual", "most"))

    said = pytest.raises(ProviderError, match="cpu did not take least, most, usual") if given else nullcontext()
    with said:
        apart(
            lambda: open_session(
                folder=parts.folder, head=parts.head, provider=row, threads=1, provider_options={},
                session_options={}, fixed=fixed_shapes(parts, row),
            )
        )  # fmt: skip


@pytest.mark.parametrize("attention", [GROUPED, PLAIN])
def test_the_profiled_pass_has_one_of_the_sizes(attention: Attention, tmp_path: Path) -> None:
    parts = read_model_parts(
        config=load_config(write_config(tmp_path)), folder=tiny_model(tmp_path, attention=attention)
    )
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "pass")
    fixed = FixedShapes(sizes=(2, 8), capacity=64)
    for name, size in fixed.frozen(parts.folder).items():
        options.add_free_dimension_override_by_name(name, size)
    session = onnxruntime.InferenceSession(parts.folder.graph.path, options, providers=["CPUExecutionProvider"])
    assert any(one.operator == "MatMulNBits" for one in profiled(session, parts.folder, fixed=fixed))


@pytest.mark.parametrize(
    ("options", "shapes", "captures"),
    [("", "any", False), ('enable_cuda_graph = "1"', "sizes", True), ('enable_cuda_graph = "0"', "any", False)],
)
def test_graphs_are_captured_where_that_is_asked_for(options: str, shapes: str, captures: bool, tmp_path: Path) -> None:
    change = f'folder = "./model"\nprovider = "cuda"\nprovider_options = {{ {options} }}'
    row = provider_of(load_config(write_config(tmp_path, ('folder = "./model"', change))))
    assert (row.shapes, row.captures) == (shapes, captures)
