"""An ONNX model while it is written: nodes in memory, weights streamed to the external file beside it.

Writes ``model.onnx`` and ``model.onnx.data``. A weight leaves memory as soon as it is written, so the peak is one
tensor, not the model. IR 10 and opset 21 are what every supported ONNX Runtime (1.23 and newer) reads.
It knows nothing of any architecture.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from edgeguard import __version__

GRAPH_NAME = "model.onnx"
DATA_NAME = "model.onnx.data"
MICROSOFT = "com.microsoft"

ELEMENTS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}

_IR_VERSION = 10
_OPSET = 21
_ALIGNMENT = 4096  # a page, so that ONNX Runtime can map each tensor instead of reading it


class OnnxFile:
    """Collects a graph; a context manager that closes the data file."""

    def __init__(self, *, folder: Path) -> None:
        self._folder = folder
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: dict[str, TensorProto] = {}
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._data = (folder / DATA_NAME).open("wb")

    def __enter__(self) -> OnnxFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._data.close()

    def input(self, name: str, kind: int, shape: list[int | str]) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int, shape: list[int | str]) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def node(self, operator: str, inputs: list[str], *, name: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, both called ``name``, and return it."""
        return self.nodes(operator, inputs, names=[name], domain=domain, **attributes)[0]

    def nodes(
        self, operator: str, inputs: list[str], *, names: list[str], domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node with several outputs, named after the first; an empty name leaves an optional one out."""
        self._nodes.append(helper.make_node(operator, inputs, names, name=names[0], domain=domain, **attributes))
        return names

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """A small value that lives in the graph itself; the same name twice is the same value."""
        if name not in self._initializers:
            self._initializers[name] = numpy_helper.from_array(values, name)
        return name

    def weight(self, name: str, values: NDArray[Any]) -> str:
        """A value that lives in the data file, little-endian."""
        self._data.write(b"\0" * (-self._data.tell() % _ALIGNMENT))
        tensor = TensorProto(
            name=name,
            data_type=helper.np_dtype_to_tensor_dtype(values.dtype),
            dims=values.shape,
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (("location", DATA_NAME), ("offset", self._data.tell()), ("length", values.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tofile(self._data)
        self._initializers[name] = tensor
        return name

    def view(self, name: str, of: str, shape: tuple[int, ...]) -> str:
        """The bytes of the weight ``of`` under another name and shape; stored once."""
        tensor = TensorProto()
        tensor.CopyFrom(self._initializers[of])
        tensor.name = name
        tensor.ClearField("dims")
        tensor.dims.extend(shape)
        self._initializers[name] = tensor
        return name

    def save(self, *, name: str) -> None:
        """Check the graph and write it; the data file is complete after this."""
        read = {operand for node in self._nodes for operand in node.input}  # a view may have replaced its original
        initializers = [tensor for tensor in self._initializers.values() if tensor.name in read]
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, initializer=initializers)
        model = helper.make_model(
            graph,
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", _OPSET), helper.make_opsetid(MICROSOFT, 1)],
            producer_name="edgeguard",
            producer_version=__version__,
        )
        self._data.flush()
        (self._folder / GRAPH_NAME).write_bytes(model.SerializeToString(deterministic=True))
