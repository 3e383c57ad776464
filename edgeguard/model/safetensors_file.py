"""Reads a safetensors file of float tensors, whole, as float32.

The format (huggingface/safetensors, README): eight bytes with the header's length, little-endian; the header, a JSON
object of ``{name: {dtype, shape, data_offsets}}``; the values. Every length is checked against the file's size before
anything is read, so a damaged file is refused and never takes more memory than it has bytes. Raises ``ModelError``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeguard.errors import ModelError

_WIDTHS = {"F32": 4, "F16": 2, "BF16": 2}


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Every tensor of the file by its name."""
    try:
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
        values = content[8 + size :]
        return {name: _tensor(entry, values) for name, entry in header.items() if name != "__metadata__"}
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ModelError(f"{path}: no safetensors file, or a damaged one: {error}") from error


def _tensor(entry: dict[str, Any], values: bytes) -> NDArray[np.float32]:
    kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in _WIDTHS:
        raise ValueError(f"a tensor of type {kind!r}; supported are {', '.join(_WIDTHS)}")
    if not all(isinstance(number, int) and number >= 0 for number in (*shape, begin, end)):
        raise ValueError(f"a tensor with shape {shape!r} at {begin!r} to {end!r}")
    if end > len(values) or end - begin != math.prod(shape) * _WIDTHS[kind]:
        raise ValueError(f"a tensor of {end - begin} bytes at {begin}, with shape {shape}, in {len(values)} bytes")
    raw = values[begin:end]
    if kind == "BF16":  # the upper half of a float32
        flat = (np.frombuffer(raw, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        flat = np.frombuffer(raw, "<f4" if kind == "F32" else "<f2").astype(np.float32)
    tensor: NDArray[np.float32] = flat.reshape(shape)
    return tensor
