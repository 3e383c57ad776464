"""What is inside a model folder: architecture, sizes, precision per kind of tensor, and what a pass must read.

Works on folders built here, by onnxruntime-genai's builder and by Optimum: it goes by operators and by the names of the
cache's inputs. Only the graph is read, not the weights; but if the folder has a manifest its files are hashed first,
because a report about a damaged model would be worth nothing.

Sizes are in bytes. Raises ``ModelError`` naming the file; ``MissingExtraError`` without ``onnx``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeguard.errors import MissingExtraError, ModelError
from edgeguard.model import manifest

if TYPE_CHECKING:
    import onnx

    from edgeguard.model.graph_weights import WeightUse


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorKind:
    """All weights of one purpose and precision; ``stored_bytes`` includes their scales."""

    purpose: str
    precision: str
    tensors: int
    parameters: int
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """``bytes_per_pass``: the weights that every pass reads; ``kv_bytes_per_token``: the cache of all layers.

    ``verified``: the folder has a manifest and every file is the one that was built. ``adapter``: built into it.
    """

    folder: Path
    name: str
    licence: str | None
    architecture: str
    layers: int
    context: int | None
    vocabulary: int | str
    parameters: int
    stored_bytes: int
    bytes_per_pass: int
    kv_bytes_per_token: int
    accuracy_level: int | None
    logits: str
    verified: bool
    adapter: str | None
    tensors: tuple[TensorKind, ...]

    def bytes_with_head(self, rows: int) -> int:
        """What a pass reads when so many rows of the head are left (the engine cuts it to what an answer can use)."""
        head = sum(kind.stored_bytes for kind in self.tensors if "head" in kind.purpose)
        whole = self.vocabulary if isinstance(self.vocabulary, int) else rows
        return self.bytes_per_pass - head * max(0, whole - rows) // whole


def inspect(folder: Path) -> ModelSummary:
    """Look into the model folder."""
    if not folder.is_dir():
        raise ModelError(f"{folder}: there is no such model folder; 'edgeguard model build' makes one")
    made = manifest.verify(folder)
    config = _json(folder / "genai_config.json").get("model", {})
    optimum = _json(folder / "config.json")
    path = _graph_path(folder, config)
    graph = _load(path).graph
    from edgeguard.model.graph_weights import accuracy_level, weight_uses

    uses = weight_uses(graph)
    caches = [value for value in graph.input if value.name.startswith("past")]
    outputs = {value.name: _dimensions(value) for value in graph.output}
    if not caches or "logits" not in outputs:
        raise ModelError(f"{path}: has no cache inputs ('past...') or no 'logits': it is no decoder with a KV cache")
    return ModelSummary(
        folder=folder,
        name=made.get("name", folder.name),
        licence=made.get("licence"),
        architecture=config.get("type") or optimum.get("model_type") or "unknown",
        layers=len(caches) // 2,
        context=config.get("context_length") or optimum.get("max_position_embeddings"),
        vocabulary=outputs["logits"][-1],
        parameters=sum(use.parameters for use in uses),
        stored_bytes=sum(use.stored_bytes for use in uses),
        bytes_per_pass=sum(use.stored_bytes for use in uses if use.read_by_pass),
        kv_bytes_per_token=sum(_bytes_per_token(value) for value in caches),
        accuracy_level=accuracy_level(graph),
        logits="last" if outputs["logits"][1] == 1 else "all",
        verified=bool(made),
        adapter=_adapter(made.get("adapter")),
        tensors=_kinds(uses),
    )


def _kinds(uses: Iterable[WeightUse]) -> tuple[TensorKind, ...]:
    groups: dict[tuple[str, str], list[WeightUse]] = {}
    for use in uses:
        groups.setdefault((" and ".join(sorted(use.purposes)), use.precision), []).append(use)
    return tuple(
        TensorKind(
            purpose=purpose,
            precision=precision,
            tensors=len(group),
            parameters=sum(use.parameters for use in group),
            stored_bytes=sum(use.stored_bytes for use in group),
        )
        for (purpose, precision), group in groups.items()
    )


def _adapter(facts: dict[str, Any] | None) -> str | None:
    if facts is None:
        return None
    return f"{facts['name']}, rank {facts['rank']}, {facts['parameters']:,} parameters, SHA-256 {facts['sha256'][:16]}"


def _graph_path(folder: Path, config: dict[str, Any]) -> Path:
    """As genai_config.json says, else where Optimum and onnx-community put it."""
    named = config.get("decoder", {}).get("filename")
    candidates = [folder / named] if named else [folder / "model.onnx", folder / "onnx" / "model.onnx"]
    for path in candidates:
        if path.is_file():
            return path
    raise ModelError(f"{candidates[0]}: is missing; build the model again")


def _load(path: Path) -> onnx.ModelProto:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise MissingExtraError(package="onnx", extra="models", purpose="inspecting a model") from error
    try:
        return onnx.load(str(path), load_external_data=False)
    except (OSError, DecodeError) as error:
        raise ModelError(f"{path}: is no ONNX model, or a damaged one: {error}") from error


def _json(path: Path) -> dict[str, Any]:
    """The object in ``path``, empty if there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    return content if isinstance(content, dict) else {}


def _dimensions(value: onnx.ValueInfoProto) -> list[int | str]:
    """Sizes, or the names of those that vary."""
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _bytes_per_token(cache: onnx.ValueInfoProto) -> int:
    """Of one cache (batch, kv heads, tokens, head size): everything but batch and tokens."""
    from onnx import helper

    fixed = [size for size in _dimensions(cache) if isinstance(size, int)]
    return math.prod(fixed) * int(helper.tensor_dtype_to_np_dtype(cache.type.tensor_type.elem_type).itemsize)
