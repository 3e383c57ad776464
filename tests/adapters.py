"""Low-rank adapters for the tiny model, as PEFT saves them: random, seeded, written without PEFT."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.tiny import FEED_FORWARD, HEADS, HIDDEN, KV_HEADS, LAYERS

KV = KV_HEADS * HIDDEN // HEADS
SHAPES = {  # of each layer's matrices, (N, K)
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (KV, HIDDEN),
    "self_attn.v_proj": (KV, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (FEED_FORWARD, HIDDEN),
    "mlp.up_proj": (FEED_FORWARD, HIDDEN),
    "mlp.down_proj": (HIDDEN, FEED_FORWARD),
}
RANK = 4


def random_tensors(
    *, modules: tuple[str, ...] = tuple(SHAPES), seed: int = 3, rank: int = RANK
) -> dict[str, NDArray[Any]]:
    """PEFT's names and shapes; large enough to change the answers."""
    random = np.random.default_rng(seed)
    tensors = {}
    for layer in range(LAYERS):
        for module in modules:
            rows, columns = SHAPES[module]
            name = f"base_model.model.model.layers.{layer}.{module}"
            tensors[f"{name}.lora_A.weight"] = random.normal(0, columns**-0.5, (rank, columns)).astype(np.float32)
            tensors[f"{name}.lora_B.weight"] = random.normal(0, 0.3, (rows, rank)).astype(np.float32)
    return tensors


def write_adapter(
    folder: Path, *, tensors: Mapping[str, NDArray[Any]] | None = None, kind: str = "F32", **keys: Any
) -> Path:
    """The two files in ``folder``; ``keys`` are added to ``adapter_config.json``, or replace what is there."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 8, "bias": "none", "init_lora_weights": True, **keys}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, values in (random_tensors() if tensors is None else tensors).items():
        raw = stored_as(kind, values)
        header[name] = {"dtype": kind, "shape": values.shape, "data_offsets": [len(content), len(content) + len(raw)]}
        content += raw
    head = json.dumps(header).encode()
    (folder / "adapter_model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + content)
    return folder


def stored_as(kind: str, values: NDArray[Any]) -> bytes:
    if kind == "BF16":
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return values.astype({"F32": "<f4", "F16": "<f2"}[kind]).tobytes()
