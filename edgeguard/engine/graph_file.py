"""What must be known of an ONNX file before ONNX Runtime opens it: its versions, and which other files it reads.

The runtime says too little or says it too late: a file that is too new gets an unhelpful error, and external data is
read from wherever the file points. Only the fields that matter are walked, by the numbers of ``onnx.proto``, without
the ``onnx`` package: the machine on the robot does not have it.

Raises ``ModelError`` for a file that is missing, that is no ONNX model, or whose data lies outside its folder.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edgeguard.engine.protobuf import BYTES, walk
from edgeguard.errors import ModelError

# Message -> number of a field -> the message in it: every way to a tensor (onnx.proto, IR 13).
_INSIDE: Mapping[str, Mapping[int, str]] = {
    "model": {7: "main graph", 8: "opset", 25: "function"},
    "main graph": {1: "node", 5: "tensor", 11: "input", 12: "output", 15: "sparse"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
    "input": {2: "type"},
    "type": {1: "tensor type"},
    "tensor type": {2: "shape"},
    "shape": {1: "dimension"},
}
_IR_VERSION = 1  # of a model
_DOMAIN, _VERSION = 1, 2  # of an opset
_KEY, _VALUE = 1, 2  # of an entry
_NAME = 1  # of an input or output
_SIZE, _SYMBOL = 1, 2  # of a dimension

_DEEPEST = 40  # messages inside messages; a graph in a graph takes three


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFile:
    """``opset`` is that of the standard domain, ``external`` the names of the files that hold weights.

    ``inputs`` and ``outputs`` are named in the graph's order; ``dimensions`` of an input are its sizes, those that are
    open by their names (empty if they have none).
    """

    path: Path
    ir_version: int
    opset: int
    external: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dimensions: Mapping[str, tuple[str | int, ...]]


@dataclass(slots=True)
class _Found:
    ir_version: int = 0
    opset: int = 0
    external: set[str] = field(default_factory=set)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    shape: list[str | int] = field(default_factory=list)
    dimensions: dict[str, tuple[str | int, ...]] = field(default_factory=dict)


def read_graph_file(path: Path) -> GraphFile:
    """Read the ONNX file at ``path`` as far as it matters, and check that its data lies in its folder."""
    found = _Found()
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _walk(content, 0, len(content), message="model", found=found, depth=0)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); build the model again") from error
    except (ValueError, IndexError) as error:
        raise ModelError(f"{path}: is no ONNX model, or a damaged one; build the model again") from error
    if not found.ir_version or not found.opset:
        raise ModelError(f"{path}: is no ONNX model: it names no IR version or no opset; build the model again")
    external = tuple(sorted(found.external))
    for name in external:
        _check_inside(path, name)
    return GraphFile(
        path=path,
        ir_version=found.ir_version,
        opset=found.opset,
        external=external,
        inputs=tuple(found.inputs),
        outputs=tuple(found.outputs),
        dimensions=found.dimensions,
    )


def _walk(content: mmap.mmap, start: int, end: int, *, message: str, found: _Found, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("messages too deep")
    values: dict[int, int | str] = {}
    for number, kind, value, stop in walk(content, start, end):
        inside = _INSIDE.get(message, {}).get(number)
        if stop is None:
            values[number] = value
        elif kind != BYTES:
            continue
        elif inside is not None:
            _walk(content, value, stop, message=inside, found=found, depth=depth + 1)
        elif message in ("entry", "opset", "dimension") or (message in ("input", "output") and number == _NAME):
            values[number] = content[value:stop].decode()
    if message == "model":
        found.ir_version = int(values.get(_IR_VERSION, 0))
    elif message == "opset" and values.get(_DOMAIN, "") in ("", "ai.onnx"):
        found.opset = int(values.get(_VERSION, 0))
    elif message == "dimension":
        found.shape.append(int(values[_SIZE]) if _SIZE in values else str(values.get(_SYMBOL, "")))
    elif message == "input":
        name = str(values.get(_NAME, ""))
        found.inputs.append(name)
        found.dimensions[name], found.shape = tuple(found.shape), []
    elif message == "output":
        found.outputs.append(str(values.get(_NAME, "")))
    elif message == "entry" and values.get(_KEY) == "location":
        found.external.add(str(values.get(_VALUE, "")))


def _check_inside(graph: Path, name: str) -> None:
    """A weight file is an ordinary file in the graph's folder; a link could lead to anything on this machine."""
    data = graph.parent / name
    if Path(name).name != name or name in ("", ".", ".."):
        raise ModelError(f"{graph}: reads its weights from {name!r}, outside its folder; only files beside it are read")
    if data.is_symlink() and not _in_hub_cache(data):
        raise ModelError(f"{data}: is a symbolic link; weights are read from ordinary files only: copy the file here")
    if not data.is_file():
        raise ModelError(f"{data}: is missing; build the model again")
    if data.stat().st_nlink > 1:
        raise ModelError(f"{data}: has a second name (a hard link), outside the folder perhaps; copy the file here")


def _in_hub_cache(data: Path) -> bool:
    """Whether it is a model hub's own link, from ``snapshots/REVISION/…`` of a repository into its ``blobs``."""
    snapshot = next((parent for parent in data.parents if parent.parent.name == "snapshots"), None)
    return snapshot is not None and data.resolve().parent == (snapshot.parents[1] / "blobs").resolve()
