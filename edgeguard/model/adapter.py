"""A low-rank adapter (LoRA) in PEFT's own layout, for a llama model that is read from GGUF.

    FOLDER/adapter_config.json          rank, alpha and what kind of adapter it is
    FOLDER/adapter_model.safetensors    ...layers.L.self_attn.q_proj.lora_A.weight (r, K), ...lora_B.weight (N, r), ...

What it adds to a matrix is ``scale * B @ A`` with ``scale = alpha / r``, or ``alpha / sqrt(r)`` with ``use_rslora``
(Hu et al. 2021; Kalajdzievski 2023). Rows are in Hugging Face's order, which is the graph's, not GGUF's. The base model
stays what it is; so whatever would change it (full modules, biases, DoRA, PiSSA, an embedding or a head) is refused
with ``ModelError``, naming the file and the key, because leaving it out would make another model of the adapter.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeguard.errors import ModelError
from edgeguard.model.adapter_files import CONFIG_NAME, WEIGHTS_NAME
from edgeguard.model.safetensors_file import read_safetensors
from edgeguard.model.weights import LowRank

_GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_TENSOR = re.compile(r"(?:.*\.)?layers\.(\d+)\.(self_attn|mlp)\.(\w+)\.lora_([AB])\.(?:\w+\.)?weight")

# Keys that change what the tensors mean, and the values with which they do not.
_ALLOWED: dict[str, tuple[Any, ...]] = {
    "peft_type": ("LORA",),
    "bias": (None, "none"),
    "fan_in_fan_out": (None, False),
    "modules_to_save": (None, []),
    "use_dora": (None, False),
    "use_qalora": (None, False),
    "use_bdlora": (None, False),
    "alora_invocation_tokens": (None, []),
    "arrow_config": (None,),
    "kasa_config": (None,),
    "lora_bias": (None, False),
    "rank_pattern": (None, {}),
    "alpha_pattern": (None, {}),
    "layer_replication": (None, []),
    "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []),
    "init_lora_weights": (None, True, False, "gaussian", "orthogonal"),
}
_WHY = {
    "fan_in_fan_out": "its matrices are transposed, as those of no llama model are",
    "modules_to_save": "it replaces whole matrices: merge it with PEFT and convert the result instead",
    "use_dora": "it rescales the base's rows: merge it with PEFT and convert the result instead",
    "init_lora_weights": "it was trained on a changed base: save it with path_initial_model_for_weight_conversion",
}


class Adapter:
    """One adapter, checked when it is opened. ``rank`` and the number of ``parameters`` are for people."""

    def __init__(self, *, folder: Path) -> None:
        self.folder = folder
        config = _read_config(folder / CONFIG_NAME)
        self.rank = _size(config, "r", folder)
        alpha = _size(config, "lora_alpha", folder)
        self._scale = alpha / (math.sqrt(self.rank) if config.get("use_rslora") else self.rank)
        self._factors = self._read(folder / WEIGHTS_NAME)
        self.parameters = sum(factor.size for pair in self._factors.values() for factor in pair.values())

    def check_fits(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """That every matrix it changes is in ``shapes`` ((N, K) by GGUF's name) and has the right sizes."""
        for name, pair in self._factors.items():
            shape = shapes.get(f"{name}.weight")
            if shape is None:
                raise ModelError(f"{self.folder / WEIGHTS_NAME}: it changes {name!r}, which this model does not have")
            found = (pair["B"].shape[0], pair["A"].shape[1])
            if found != shape:
                raise ModelError(
                    f"{self.folder / WEIGHTS_NAME}: its {name!r} is {found[0]} x {found[1]} and the model's "
                    f"{shape[0]} x {shape[1]}: it was trained on another model"
                )

    def term(self, name: str) -> LowRank | None:
        """What is added to the matrix of GGUF's name ``name``; None if it stays as it is."""
        pair = self._factors.get(name)
        if pair is None:
            return None
        return LowRank(down=pair["A"], up=np.float32(self._scale) * pair["B"])

    def _read(self, path: Path) -> dict[str, dict[str, NDArray[np.float32]]]:
        factors: dict[str, dict[str, NDArray[np.float32]]] = {}
        for name, values in read_safetensors(path).items():
            found = _TENSOR.fullmatch(name)
            part = None if found is None else _GGUF_NAMES.get(f"{found[2]}.{found[3]}")
            if found is None or part is None:
                raise ModelError(
                    f"{path}: tensor {name!r} belongs to no matrix that can be adapted; those are "
                    f"{', '.join(one.rpartition('.')[2] for one in _GGUF_NAMES)} of each layer"
                )
            if values.ndim != 2 or values.shape[0 if found[4] == "A" else 1] != self.rank:
                raise ModelError(f"{path}: tensor {name!r} is {list(values.shape)}, which is not of rank {self.rank}")
            if not np.isfinite(values).all():
                raise ModelError(f"{path}: tensor {name!r} has values that are no numbers: the training diverged")
            factors.setdefault(f"blk.{found[1]}.{part}", {})[found[4]] = values
        for name, pair in factors.items():
            if len(pair) < 2:
                raise ModelError(f"{path}: of {name!r} there is only one of lora_A and lora_B")
        if not factors:
            raise ModelError(f"{path}: holds no tensors")
        return factors


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path}: is no JSON object")
    for key, allowed in _ALLOWED.items():
        value = config.get(key)
        if value not in allowed:
            why = _WHY.get(key, f"only {', '.join(map(repr, allowed[-1:]))} can be loaded")
            raise ModelError(f"{path}: {key} = {value!r} is not supported: {why}")
    return config


def _size(config: Mapping[str, Any], key: str, folder: Path) -> float:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise ModelError(f"{folder / CONFIG_NAME}: {key} = {value!r} is no size")
    return value
