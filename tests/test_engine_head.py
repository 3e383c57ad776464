"""The head cut to an answer: the rows that stay have the bits they had, and what is not understood stays whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from edgeguard.bench.observations import draw_fields
from edgeguard.config import load_config
from edgeguard.engine.decoder import HeadError
from edgeguard.engine.folder import ModelFolder, read_model_folder
from edgeguard.engine.graph_file import read_graph_file
from edgeguard.engine.head import LARGEST_GRAPH_BYTES, TILE, cut_head
from edgeguard.engine.language_model import LanguageModel
from edgeguard.engine.onnx_parts import Tensor
from edgeguard.engine.protobuf import Message
from edgeguard.engine.session import runtime_errors
from tests.engine_setup import load, observation, write_config
from tests.real import real_model
from tests.tiny import VOCABULARY, tiny_model

RANDOM = np.random.default_rng(7)
ROWS, COLUMNS = 160, 64
KEPT = (3, 4, 17, 40, 99, 158, 159)


def bits_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8)


# ------------------------------------------------------------------------------------------------ heads built here


@pytest.mark.parametrize("logits", ["last", "all"])
@pytest.mark.parametrize(
    ("embedding", "head"),
    [
        ("Q8_0", None),
        ("Q4_0", None),
        ("Q4_1", None),
        ("F16", None),
        ("F32", None),
        ("Q8_0", "Q8_0"),
        ("Q8_0", "Q4_1"),
        ("Q8_0", "F16"),
        ("F16", "F32"),
    ],
)
@pytest.mark.parametrize("accuracy_level", [0, 4])
def test_kept_rows_have_their_bits_for_every_kind_of_weight(
    tmp_path: Path, embedding: str, head: str | None, logits: str, accuracy_level: int
) -> None:
    """And they are those of every position, also where the model computes but those of the last."""
    config = write_config(tmp_path)
    whole, folder = (
        tiny_model(tmp_path, embedding_type=embedding, head_type=head, logits=one, accuracy_level=accuracy_level)
        for one in ("all", logits)
    )
    cut, full = load(config, folder), load(config, whole, full_head=True)
    assert cut.engine.every_position
    assert not full.engine.every_position, "it has them, but nobody asks for as many as that"
    tokens = cut.engine.head.tokens
    assert tokens is not None
    assert set(tokens) == cut.automaton.alphabet
    assert cut.identity["head"] == f"cut to {len(tokens)} of {VOCABULARY} rows"
    assert full.identity["head"] == "full: as asked"
    for words in ("go on", "stop", "turn left, please"):
        prompt = cut.prompt.request(observation(words=words))
        for model in (cut, full):
            model.engine.cache.rewind(0)
        ours, theirs = cut.engine.run(prompt), full.engine.run(prompt)
        assert len(ours) == cut.engine.head.rows == TILE < len(theirs) == VOCABULARY
        for back in (0, 1, len(prompt) - 1):
            ours, theirs = (model.engine.earlier(back) for model in (cut, full))
            assert np.array_equal(bits_of(ours[: len(tokens)]), bits_of(theirs[list(tokens)]))
        assert cut.decoder.decode(prompt) == full.decoder.decode(prompt)


def stored(model: bytes) -> dict[str, onnx.TensorProto]:
    return {tensor.name: tensor for tensor in onnx.load_from_string(model).graph.initializer}


def test_an_untied_head_is_gone_and_a_tied_one_stays_an_embedding(tmp_path: Path) -> None:
    for head in (None, "Q4_1"):
        under = tmp_path / str(head)
        under.mkdir()
        folder = read_model_folder(tiny_model(under, head_type=head))
        cut = cut_head(folder, alphabet=KEPT)
        assert cut.model is not None
        before, after = stored(folder.graph.path.read_bytes()), stored(cut.model)
        gone = {"token_embd.scales"} if head is None else {"output", "output.scales", "output.carry"}
        assert before.keys() - after.keys() == gone, "the embedding reads its scales as a view of another name"
        assert all(name.endswith("/cut") for name in after.keys() - before.keys())
        assert sum(len(one.raw_data) for one in after.values()) < 10_000, "only the kept rows are inside"


def test_what_can_be_chosen_decides_and_nothing_else(tmp_path: Path) -> None:
    folder = read_model_folder(tiny_model(tmp_path))
    one, other = (cut_head(folder, alphabet=alphabet) for alphabet in ([9, 4, 200], {200, 9, 4}))
    assert one == other
    assert one.tokens == (4, 9, 200)
    assert cut_head(folder, alphabet=[4, 9, 201]).model != one.model
    assert cut_head(folder, alphabet=range(40)).rows == 2 * TILE


# ------------------------------------------------------------------------------------------- heads of other builders


def tensor(name: str, values: NDArray[Any]) -> TensorProto:
    return numpy_helper.from_array(values, name)


def dense(rows: int = ROWS, columns: int = COLUMNS) -> NDArray[np.float32]:
    return RANDOM.normal(0, 0.3, (rows, columns)).astype(np.float32)


def whole(low: int, high: int, shape: Sequence[int], dtype: Any) -> NDArray[Any]:
    return RANDOM.integers(low, high, shape).astype(dtype)


def node(operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    domain = "com.microsoft" if operator.endswith("Bits") else ""
    return helper.make_node(operator, list(inputs), [output], name=output, domain=domain, **attributes)


def n_bits(bits: int, *, zero_points: bool, flat: bool, bias: bool = False) -> tuple[list[Any], list[Any]]:
    blocks, block = COLUMNS // 32, 32
    tensors = [
        tensor("w", whole(0, 256, (ROWS, blocks, block * bits // 8), np.uint8)),
        tensor("s", RANDOM.uniform(0.01, 0.1, (ROWS * blocks,) if flat else (ROWS, blocks)).astype(np.float32)),
    ]
    operands = ["x", "w", "s"]
    if zero_points or bias:
        operands.append("z" if zero_points else "")
    if zero_points:
        per_row = -(-blocks * bits // 8)
        tensors.append(tensor("z", whole(0, 256, (ROWS * per_row,) if flat else (ROWS, per_row), np.uint8)))
    if bias:
        operands += ["", "b"]
        tensors.append(tensor("b", RANDOM.normal(0, 1, ROWS).astype(np.float32)))
    attributes = {"K": COLUMNS, "N": ROWS, "bits": bits, "block_size": block, "accuracy_level": 4}
    return [node("MatMulNBits", operands, "logits", **attributes)], tensors


def gemm(*, transposed: bool, bias: Any) -> tuple[list[Any], list[Any]]:
    tensors = [tensor("w", dense() if transposed else np.ascontiguousarray(dense().T))]
    operands = ["flat", "w"]
    if bias is not None:
        operands.append("b")
        tensors.append(tensor("b", bias))
    shape = [tensor("two", np.array([-1, COLUMNS], np.int64)), tensor("three", np.array([1, -1, ROWS], np.int64))]
    nodes = [
        node("Reshape", ["x", "two"], "flat"),
        node("Gemm", operands, "logits", transB=int(transposed)),
    ]
    return nodes, [*tensors, *shape[:1]]


def dequantised(scale: NDArray[Any], zero: NDArray[Any] | None, **attributes: Any) -> tuple[list[Any], list[Any]]:
    tensors = [tensor("w", whole(-127, 128, (ROWS, COLUMNS), np.int8)), tensor("s", scale)]
    operands = ["w", "s"]
    if zero is not None:
        operands.append("z")
        tensors.append(tensor("z", zero))
    nodes = [
        node("DequantizeLinear", operands, "dequantised", **attributes),
        node("Transpose", ["dequantised"], "turned", perm=[1, 0]),
        node("MatMul", ["x", "turned"], "logits"),
    ]
    return nodes, tensors


def four_bits() -> tuple[list[Any], list[Any]]:
    """Blocks of 32 along the inputs, (K, N) in two to a byte, an odd row among the kept ones."""
    values = whole(0, 16, (COLUMNS, ROWS), np.uint8).reshape(-1)
    packed = (values[0::2] | values[1::2] << 4).astype(np.uint8)
    raw = TensorProto(name="w", data_type=TensorProto.UINT4, dims=(COLUMNS, ROWS), raw_data=packed.tobytes())
    scales = RANDOM.uniform(0.01, 0.1, (COLUMNS // 32, ROWS)).astype(np.float32)
    nodes = [
        node("DequantizeLinear", ["w", "s"], "dequantised", axis=0, block_size=32),
        node("MatMul", ["x", "dequantised"], "logits"),
    ]
    return nodes, [raw, tensor("s", scales)]


def dynamic() -> tuple[list[Any], list[Any]]:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"], name="quantise"),
        node("MatMulInteger", ["q", "w", "zero", "z"], "sums"),
        node("Cast", ["sums"], "cast", to=TensorProto.FLOAT),
        node("Mul", ["scale", "s"], "scales"),
        node("Mul", ["cast", "scales"], "product"),
        node("Add", ["product", "b"], "logits"),
    ]
    tensors = [
        tensor("w", whole(-127, 128, (COLUMNS, ROWS), np.int8)),
        tensor("z", whole(-3, 3, (ROWS,), np.int8)),
        tensor("s", RANDOM.uniform(0.01, 0.1, ROWS).astype(np.float32)),
        tensor("b", RANDOM.normal(0, 1, ROWS).astype(np.float32)),
    ]
    return nodes, tensors


def scaled() -> tuple[list[Any], list[Any]]:
    """Logits with a scale and a soft cap, as Granite's and Gemma's."""
    nodes = [
        node("MatMul", ["x", "w"], "product"),
        node("Div", ["product", "cap"], "small"),
        node("Tanh", ["small"], "bent"),
        node("Mul", ["bent", "cap"], "logits"),
    ]
    return nodes, [tensor("w", np.ascontiguousarray(dense().T)), tensor("cap", np.array(30, np.float32))]


ROW_SCALES = RANDOM.uniform(0.01, 0.1, ROWS).astype(np.float32)
HEADS: Mapping[str, tuple[list[Any], list[Any]]] = {
    "matmul": ([node("MatMul", ["x", "w"], "logits")], [tensor("w", np.ascontiguousarray(dense().T))]),
    "gemm": gemm(transposed=False, bias=None),
    "gemm, transposed, bias": gemm(transposed=True, bias=dense(1, ROWS)[0]),
    "gemm, transposed, one bias": gemm(transposed=True, bias=np.array([0.5], np.float32)),
    **{
        f"{bits} bits{', zero points' * zero}{', flat' * flat}": n_bits(bits, zero_points=zero, flat=flat)
        for bits in (4, 8)
        for zero in (False, True)
        for flat in (False, True)
    },
    "2 bits": n_bits(2, zero_points=True, flat=True),
    "4 bits, bias": n_bits(4, zero_points=False, flat=True, bias=True),
    "one scale": dequantised(np.array(0.05, np.float32), None),
    "a scale per row": dequantised(ROW_SCALES, whole(-3, 3, (ROWS,), np.int8), axis=0),
    "a scale per column": dequantised(ROW_SCALES[:COLUMNS], None, axis=-1),
    "four bits in blocks": four_bits(),
    "int8, dynamic": dynamic(),
    "scale and soft cap": scaled(),
}


def folder_of(path: Path, template: ModelFolder, nodes: list[Any], tensors: list[Any], *more: str) -> ModelFolder:
    """A folder whose graph is only a head: hidden states ``x`` in, logits out."""
    path.mkdir(exist_ok=True)
    last: list[Any] = ["k", ROWS] if nodes[-1].op_type == "Gemm" else [1, "k", ROWS]
    graph = helper.make_graph(
        nodes,
        "head",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "k", COLUMNS])],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, last),
            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in more),
        ],
        initializer=tensors,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    file = path / "model.onnx"
    file.write_bytes(helper.make_model(graph, ir_version=10, opset_imports=opsets).SerializeToString())
    return replace(template, path=path, graph=read_graph_file(file), vocabulary=ROWS)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> ModelFolder:
    return read_model_folder(tiny_model(tmp_path_factory.mktemp("tiny")))


def logits_of(model: bytes | str, hidden: NDArray[np.float32]) -> NDArray[Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"x": hidden})
    return logits.reshape(-1, logits.shape[-1])


@pytest.mark.parametrize("name", HEADS)
def test_a_head_of_another_builder_keeps_the_bits_of_its_rows(name: str, template: ModelFolder, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, template, *HEADS[name])
    cut = cut_head(folder, alphabet=KEPT)
    assert cut.model is not None, cut.summary
    for k in (1, 2, 7, 16):
        hidden = RANDOM.normal(0, 1, (1, k, COLUMNS)).astype(np.float32)
        try:
            theirs = logits_of(str(folder.graph.path), hidden)
        except runtime_errors() as error:
            pytest.skip(f"this onnxruntime does not open the whole one either: {error}")
        ours = logits_of(cut.model, hidden)
        assert ours.shape == (k, TILE)
        assert np.array_equal(bits_of(ours[:, : len(KEPT)]), bits_of(theirs[:, list(KEPT)]))


# ----------------------------------------------------------------------------------------------- what stays whole


PLAIN = [tensor("w", np.ascontiguousarray(dense().T))]


@pytest.mark.parametrize(
    ("nodes", "tensors", "outputs", "why"),
    [
        ([node("MatMul", ["x", "w"], "p"), node("Softmax", ["p"], "logits")], PLAIN, (), "the operator Softmax"),
        (
            [node("MatMul", ["x", "w"], "logits"), node("Exp", ["logits"], "e")],
            PLAIN,
            ("e",),
            "its logits are used inside the graph",
        ),
        ([node("Tanh", ["x"], "logits")], [], (), "depends on the input 'x'"),
        (
            [node("Exp", ["w"], "computed"), node("MatMul", ["x", "computed"], "logits")],
            PLAIN,
            (),
            "the weights of its head come from the operator Exp",
        ),
        (
            [node("Transpose", ["w"], "t"), node("MatMul", ["x", "t"], "logits")],
            [tensor("w", dense())],
            (),
            "names no axes",
        ),
        (
            [node("MatMul", ["x", "w"], "logits")],
            [helper.make_tensor("w", TensorProto.FLOAT, (COLUMNS, ROWS), dense().ravel())],
            (),
            "stored in a way",
        ),
    ],
)
def test_a_head_that_is_not_understood_stays_whole_and_says_why(
    template: ModelFolder, tmp_path: Path, *, nodes: list[Any], tensors: list[Any], outputs: tuple[str, ...], why: str
) -> None:
    head = cut_head(folder_of(tmp_path, template, nodes, tensors, *outputs), alphabet=KEPT)
    assert (head.model, head.tokens, head.rows) == (None, None, ROWS)
    assert head.summary.startswith("full: ")
    assert why in head.summary


def test_a_vocabulary_of_another_size_stays_whole(template: ModelFolder, tmp_path: Path) -> None:
    folder = replace(folder_of(tmp_path, template, *HEADS["matmul"]), vocabulary=ROWS + 1)
    assert "without an axis of the vocabulary" in cut_head(folder, alphabet=KEPT).summary


@pytest.mark.parametrize(
    ("alphabet", "why"), [((), "no choice"), (range(VOCABULARY - 1), f"{VOCABULARY - 1} of {VOCABULARY} tokens")]
)
def test_nothing_is_cut_for_nothing(template: ModelFolder, alphabet: Sequence[int], why: str) -> None:
    assert why in cut_head(template, alphabet=alphabet).summary


def test_a_graph_with_its_weights_inside_is_not_held_twice(template: ModelFolder, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, template, *HEADS["matmul"])
    os.truncate(folder.graph.path, LARGEST_GRAPH_BYTES + 1)
    assert "its weights are inside" in cut_head(folder, alphabet=KEPT).summary


def test_weights_that_may_come_from_outside_are_not_cut(template: ModelFolder, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, template, *HEADS["matmul"])
    proto = onnx.load(folder.graph.path)
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [COLUMNS, ROWS]))
    folder.graph.path.write_bytes(proto.SerializeToString())
    assert "'w' of its head is an input too" in cut_head(folder, alphabet=KEPT).summary


def test_weights_that_are_missing_are_left_to_whoever_opens_the_model(tmp_path: Path) -> None:
    folder = read_model_folder(tiny_model(tmp_path))
    data = folder.path / "model.onnx.data"
    data.write_bytes(data.read_bytes()[:2_000])
    assert "cannot be read here" in cut_head(folder, alphabet=KEPT).summary
    folder.graph.path.write_bytes(folder.graph.path.read_bytes()[:-9])
    assert "cannot be read here" in cut_head(folder, alphabet=KEPT).summary


def branch(operator: str) -> onnx.GraphProto:
    """What an ``If`` does with a value from outside."""
    result = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node(operator, ["turned"], ["inner"], keepdims=0)], operator, [], [result])


@pytest.mark.parametrize(
    "reader",
    [
        node("ReduceSum", ["turned"], "sum", keepdims=0),
        node("If", ["yes"], "sum", then_branch=branch("ReduceSum"), else_branch=branch("ReduceMax")),
    ],
    ids=["a node", "a graph in a node"],
)
def test_what_the_head_shares_with_the_rest_stays_there(
    reader: onnx.NodeProto, template: ModelFolder, tmp_path: Path
) -> None:
    """A turned embedding that something else reads too."""
    nodes = [node("Transpose", ["w"], "turned", perm=[1, 0]), node("MatMul", ["x", "turned"], "logits"), reader]
    folder = folder_of(tmp_path, template, nodes, [tensor("w", dense()), tensor("yes", np.array(True))], "sum")
    cut = cut_head(folder, alphabet=KEPT)
    assert cut.model is not None
    assert set(stored(cut.model)) == {"w", "yes", "w/cut"}
    hidden = RANDOM.normal(0, 1, (1, 2, COLUMNS)).astype(np.float32)
    sums = [
        onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(["sum"], {"x": hidden})[0]
        for model in (cut.model, str(folder.graph.path))
    ]
    assert sums[0] == sums[1]


# ------------------------------------------------------------------------------------------------ with the decoder


def test_token_by_token_needs_the_full_head(tmp_path: Path) -> None:
    model = load(write_config(tmp_path), tiny_model(tmp_path))
    with pytest.raises(HeadError, match="--full-head"):
        model.decoder.decode_token_by_token(model.prompt.request(observation()))


def test_a_model_that_is_copied_elsewhere_is_cut_alike(tmp_path: Path) -> None:
    """The weights beside the graph are found wherever the folder is."""
    built = tiny_model(tmp_path)
    copy = Path(shutil.copytree(built, tmp_path / "elsewhere"))
    config = write_config(tmp_path)
    here, there = load(config, built), load(config, copy)
    assert here.identity == there.identity
    prompt = here.prompt.request(observation())
    assert here.decoder.decode(prompt) == there.decoder.decode(prompt)


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> tuple[LanguageModel, LanguageModel]:
    config = write_config(tmp_path_factory.mktemp("config"))
    whole, folder = (real_model(logits=logits) for logits in ("all", "last"))
    return load(config, folder), load(config, whole, full_head=True)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_on_the_real_model_all_answers_are_those_of_the_full_head(
    heads: tuple[LanguageModel, LanguageModel], tmp_path: Path
) -> None:
    cut, _ = heads
    tokens = cut.engine.head.tokens
    assert tokens is not None
    config, different = load_config(write_config(tmp_path)), set()
    observations = draw_fields(config, seed=3)
    for _ in range(30):
        fields = next(observations)
        prompt = cut.prompt.request(fields)
        answers = []
        for model in heads:
            model.engine.begin()
            answers.append(model.decoder.decode(prompt))
        assert answers[0] == answers[1]
        different.add(answers[0])
        ours, theirs = (np.array(model.engine.run(prompt[-2:])) for model in heads)  # behind the answer, alike
        assert np.array_equal(bits_of(ours[: len(tokens)]), bits_of(theirs[list(tokens)]))
    assert len(different) > 1


# ------------------------------------------------------------------------------------------------ the wire format


def test_a_graph_taken_apart_and_put_together_is_the_same_bytes(template: ModelFolder) -> None:
    content = template.graph.path.read_bytes()
    model = Message.parse(content)
    assert model.encode() == content
    graph = Message.parse(model.every(7)[0])
    model.put(7, graph.encode())
    assert model.encode() == content
    assert {Tensor.parse(one).name for one in graph.every(5)} == set(stored(content))


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), text=st.text())
def test_what_is_put_into_a_message_comes_out_of_it(values: list[int], text: str) -> None:
    message = Message([])
    message.put(4, *values)
    message.put(300, text)
    again = Message.parse(message.encode())
    assert again.integers(4) == values
    assert again.integer(4) == values[-1]
    assert again.text(300) == text
    again.put(4, "short")
    assert again.fields[0][0] == 4
    assert len(again.fields) == 2


def test_integers_may_be_packed() -> None:
    tensor_proto = helper.make_tensor("t", TensorProto.FLOAT, (3, 200, 1), np.zeros(600, np.float32))
    assert Tensor.parse(tensor_proto.SerializeToString()).shape == (3, 200, 1)
    attribute = helper.make_attribute("perm", [2, 0, -1])
    assert Message.parse(attribute.SerializeToString()).integers(8) == [2, 0, -1]


@pytest.mark.parametrize("content", [b"\x0a\x05ab", b"\x0b\x01", b"\x80", b"\x08" + b"\xff" * 11])
def test_bytes_that_are_no_message_are_refused(content: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        Message.parse(content)
