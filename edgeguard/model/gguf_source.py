"""Reads a GGUF file of the llama architecture: hyperparameters, tokenizer, weights.

Everything the builder relies on is checked when the file is opened: the architecture, that exactly the expected
tensors are there with the expected shapes, and that their types can be carried over. What the file has and we would
ignore (biases, experts, scaled rotary positions) is refused, because ignoring it would make another model of it.

Raises ``ModelError`` naming the file and the architecture, tensor or key; ``MissingExtraError`` without ``gguf``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgeguard.errors import MissingExtraError, ModelError
from edgeguard.model import weights

if TYPE_CHECKING:
    import gguf

_REFUSED_KEYS = ("llama.rope.scaling.type", "llama.expert_count", "llama.attention.sliding_window")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """The sizes of a llama model; ``heads`` are the query heads, ``context`` and ``vocabulary`` are in tokens."""

    layers: int
    hidden: int
    feed_forward: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int
    rope_base: float
    norm_epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerData:
    """The tokenizer as GGUF stores it; ``types`` are ggml's (1 normal, 3 control, 4 user defined)."""

    kind: str
    pre_tokenizer: str
    tokens: tuple[str, ...]
    types: tuple[int, ...]
    merges: tuple[str, ...]
    bos: int | None
    eos: int | None
    unknown: int | None
    padding: int | None
    add_bos: bool
    chat_template: str | None


class GgufSource:
    """One open file; ``matrix`` and ``vector`` read lazily from the map, so memory holds one tensor at a time."""

    def __init__(self, *, path: Path) -> None:
        self.path = path
        self._reader = _open(path)
        architecture = self._value("general.architecture", str)
        if architecture != "llama":
            raise ModelError(f"{path}: architecture {architecture!r}; only 'llama' can be built")
        for key in _REFUSED_KEYS:
            if self._field(key) not in (None, 0, "none"):
                raise ModelError(f"{path}: {key} = {self._field(key)!r} is not supported")
        self.hyper = self._read_hyperparameters()
        self.tokenizer = self._read_tokenizer()
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.tied = "output.weight" not in self._tensors
        self.shapes = _expected_shapes(self.hyper, tied=self.tied)
        self._check_tensors()

    def matrix(self, name: str) -> weights.Matrix:
        """The matrix ``name`` + ".weight", (N, K); the rows of Q and K as ``GroupQueryAttention`` wants them."""
        tensor = self._tensors[f"{name}.weight"]
        try:
            matrix = weights.from_gguf(type_name=tensor.tensor_type.name, data=tensor.data)
        except ValueError as error:
            raise ModelError(f"{self.path}: tensor {tensor.name!r} is damaged: {error}") from error
        heads = {"attn_q": self.hyper.heads, "attn_k": self.hyper.kv_heads}.get(name.rpartition(".")[2])
        if heads is None:
            return matrix
        return matrix.take_rows(weights.rotary_order(heads=heads, head_size=self.hyper.head_size))

    def vector(self, name: str) -> NDArray[np.float32]:
        """The norm's gain ``name`` + ".weight", float32 (K,)."""
        return np.asarray(self._tensors[f"{name}.weight"].data, dtype=np.float32)

    def _read_hyperparameters(self) -> Hyperparameters:
        hidden = self._value("llama.embedding_length", int)
        heads = self._value("llama.attention.head_count", int)
        head_size = self._value("llama.rope.dimension_count", int, default=hidden // max(heads, 1))
        hyper = Hyperparameters(
            layers=self._value("llama.block_count", int),
            hidden=hidden,
            feed_forward=self._value("llama.feed_forward_length", int),
            heads=heads,
            kv_heads=self._value("llama.attention.head_count_kv", int, default=heads),
            head_size=self._value("llama.attention.key_length", int, default=head_size),
            vocabulary=len(self._value("tokenizer.ggml.tokens", list)),
            context=self._value("llama.context_length", int),
            rope_base=self._value("llama.rope.freq_base", float, default=10_000.0),
            norm_epsilon=self._value("llama.attention.layer_norm_rms_epsilon", float),
        )
        sizes = (hyper.layers, hidden, hyper.feed_forward, heads, hyper.kv_heads, head_size, hyper.context)
        if min(sizes) < 1 or hyper.layers > len(self._reader.tensors):
            raise ModelError(f"{self.path}: sizes that cannot be, or fewer tensors than layers: {hyper}")
        if hyper.head_size != head_size or head_size % 2 or heads * head_size != hidden or heads % hyper.kv_heads:
            raise ModelError(f"{self.path}: head sizes that do not fit together or a partial rotation: {hyper}")
        return hyper

    def _read_tokenizer(self) -> TokenizerData:
        prefix = "tokenizer.ggml"
        tokens = self._value(f"{prefix}.tokens", list)
        return TokenizerData(
            kind=self._value(f"{prefix}.model", str),
            pre_tokenizer=self._value(f"{prefix}.pre", str, default="default"),
            tokens=tuple(tokens),
            types=tuple(self._value(f"{prefix}.token_type", list, default=[1] * len(tokens))),
            merges=tuple(self._value(f"{prefix}.merges", list, default=[])),
            bos=self._value(f"{prefix}.bos_token_id", int, default=None),
            eos=self._value(f"{prefix}.eos_token_id", int, default=None),
            unknown=self._value(f"{prefix}.unknown_token_id", int, default=None),
            padding=self._value(f"{prefix}.padding_token_id", int, default=None),
            add_bos=self._value(f"{prefix}.add_bos_token", bool, default=False),
            chat_template=self._value("tokenizer.chat_template", str, default=None),
        )

    def _check_tensors(self) -> None:
        expected = self.shapes
        for name, tensor in self._tensors.items():
            if name not in expected:
                raise ModelError(f"{self.path}: tensor {name!r} is not part of a llama model that can be built here")
            shape = tuple(int(size) for size in reversed(tensor.shape))
            if shape != expected[name]:
                raise ModelError(f"{self.path}: tensor {name!r} has shape {shape}, expected {expected[name]}")
            kind = tensor.tensor_type.name
            allowed = ("F16", "F32") if len(shape) == 1 else weights.SUPPORTED_TYPES
            if kind not in allowed:
                raise ModelError(
                    f"{self.path}: tensor {name!r} has type {kind}, which cannot be carried over exactly; "
                    f"supported are {', '.join(allowed)}: take another file of this model"
                )
            if kind.startswith("Q") and shape[1] % weights.BLOCK:
                raise ModelError(f"{self.path}: tensor {name!r}: {shape[1]} inputs are no multiple of {weights.BLOCK}")
        missing = sorted(expected.keys() - self._tensors.keys())
        if missing:
            raise ModelError(f"{self.path}: {len(missing)} tensors are missing, the first is {missing[0]!r}")

    def _value(self, key: str, kind: type, default: Any = ...) -> Any:
        value = self._field(key)
        if value is None and default is not ...:
            return default
        if value is None:
            raise ModelError(f"{self.path}: the key {key!r} is missing")
        if not isinstance(value, kind) or (isinstance(value, float) and not math.isfinite(value)):
            raise ModelError(f"{self.path}: {key} = {value!r} is not of type {kind.__name__}")
        return value

    def _field(self, key: str) -> Any:
        field = self._reader.get_field(key)
        try:
            return field.contents() if field is not None else None
        except (ValueError, IndexError) as error:
            raise ModelError(f"{self.path}: damaged at the key {key!r}: {error}") from error


def _open(path: Path) -> gguf.GGUFReader:
    try:
        import gguf
    except ImportError as error:
        raise MissingExtraError(package="gguf", extra="models", purpose="reading a GGUF file") from error

    class BoundedReader(gguf.GGUFReader):
        """Stops at the end of the file, where the library reads on in empty arrays for as long as a length says."""

        def _get(self, offset: int, *rest: Any, **named: Any) -> Any:
            if not 0 <= offset < len(self.data):
                raise ValueError(f"it ends at byte {len(self.data)}, but byte {offset} is needed")
            return super()._get(offset, *rest, **named)

    try:
        return BoundedReader(path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    except (ValueError, IndexError, KeyError, OverflowError, TypeError, MemoryError) as error:
        raise ModelError(f"{path}: no GGUF file, or a damaged one: {error}") from error


def _expected_shapes(hyper: Hyperparameters, *, tied: bool) -> dict[str, tuple[int, ...]]:
    """Names and shapes, (N, K) or (K,), of gguf's ``MODEL_ARCH.LLAMA`` without its optional tensors."""
    hidden, wide, kv = hyper.hidden, hyper.feed_forward, hyper.kv_heads * hyper.head_size
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (hyper.vocabulary, hidden),
        "output_norm.weight": (hidden,),
    }
    if not tied:
        shapes["output.weight"] = (hyper.vocabulary, hidden)
    for layer in range(hyper.layers):
        block = {
            "attn_norm": (hidden,),
            "attn_q": (hidden, hidden),
            "attn_k": (kv, hidden),
            "attn_v": (kv, hidden),
            "attn_output": (hidden, hidden),
            "ffn_norm": (hidden,),
            "ffn_gate": (wide, hidden),
            "ffn_up": (wide, hidden),
            "ffn_down": (hidden, wide),
        }
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
    return shapes
