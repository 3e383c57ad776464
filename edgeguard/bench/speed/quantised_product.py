"""A product with 4-bit weights, as a quantised model's passes are made of: ``MatMulNBits`` in blocks of 32.

It is what the arithmetic of such a model can reach, which float32 does not show: with ``accuracy_level`` 4 the kernels
multiply int8. Needs ``onnx`` and ONNX Runtime; on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from edgeguard.engine.providers import find_provider
from edgeguard.engine.session import allowed_threads, import_runtime
from edgeguard.errors import MissingExtraError

ROWS, INNER, COLUMNS = 256, 2048, 2048
"""A pass of a prompt, and a matrix of a small model's size."""

FLOP = 2 * ROWS * INNER * COLUMNS

_BLOCK = 32


def quantised_product(
    *, accuracy_level: int, rows: int = ROWS, inner: int = INNER, columns: int = COLUMNS
) -> Callable[[], object]:
    """The product, ready to run; at its own size ``FLOP`` each time."""
    runtime = import_runtime(find_provider("cpu"))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = allowed_threads(0)
    graph = _graph(accuracy_level=accuracy_level, inner=inner, columns=columns)
    session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    feed = {"a": np.random.default_rng(0).random((rows, inner), dtype=np.float32)}
    return lambda: session.run(None, feed)


def _graph(*, accuracy_level: int, inner: int, columns: int) -> bytes:
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise MissingExtraError(package="onnx", extra="models", purpose="measuring a quantised product") from error
    weights = np.random.default_rng(0).integers(0, 256, (columns, inner // _BLOCK, _BLOCK // 2), np.uint8)
    scales = np.full(columns * inner // _BLOCK, 1e-3, np.float32)
    node = helper.make_node(
        "MatMulNBits",
        ["a", "weights", "scales"],
        ["product"],
        domain="com.microsoft",
        K=inner,
        N=columns,
        bits=4,
        block_size=_BLOCK,
        accuracy_level=accuracy_level,
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("a", TensorProto.FLOAT, [None, inner])],
        [helper.make_tensor_value_info("product", TensorProto.FLOAT, [None, columns])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(scales, "scales")],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    content: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return content
