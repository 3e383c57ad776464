"""An independent llama forward pass: numpy over ``gguf``'s own dequantisation, nothing of edgeguard.

It rotates neighbouring pairs of the rows as they lie in the file (ggml's ``GGML_ROPE_TYPE_NORMAL``), so it would not
share a mistake in undoing the permutation. Float32 weights, float64 softmax and norms; no cache, one sequence.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Reference:
    """The model of one GGUF file."""

    def __init__(self, *, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self._weights = {
            tensor.name.removesuffix(".weight"): gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(
                np.float32
            )
            for tensor in reader.tensors
        }
        fields = {
            key: reader.fields[f"llama.{key}"].contents()
            for key in (
                "block_count",
                "attention.head_count",
                "attention.head_count_kv",
                "attention.layer_norm_rms_epsilon",
                "rope.freq_base",
            )
        }
        self._layers, self._heads, self._kv_heads, self._epsilon, self._base = fields.values()

    def add(self, name: str, delta: Array) -> None:
        """Change one matrix; the rows of ``delta`` are in Hugging Face's order, of which llama.cpp permutes Q and K."""
        heads = {"attn_q": self._heads, "attn_k": self._kv_heads}.get(name.rpartition(".")[2])
        if heads is not None:
            rows, columns = delta.shape
            delta = delta.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
        self._weights[name] = self._weights[name] + delta.astype(np.float32)

    def log_probabilities(self, tokens: list[int]) -> Array:
        """Natural logarithms, (len(tokens), vocabulary): of the token that follows each position."""
        weights = self._weights
        x = weights["token_embd"][tokens]
        for layer in range(self._layers):
            block = f"blk.{layer}"
            x = x + self._attention(self._norm(x, f"{block}.attn_norm"), block)
            h = self._norm(x, f"{block}.ffn_norm")
            gate, up = h @ weights[f"{block}.ffn_gate"].T, h @ weights[f"{block}.ffn_up"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ weights[f"{block}.ffn_down"].T
        head = weights.get("output", weights["token_embd"])
        return log_softmax(self._norm(x, "output_norm") @ head.T)

    def _norm(self, x: Array, name: str) -> Array:
        mean_square = np.mean(np.square(x, dtype=np.float64), axis=-1, keepdims=True)
        return (x / np.sqrt(mean_square + self._epsilon)).astype(np.float32) * self._weights[name]

    def _attention(self, x: Array, block: str) -> Array:
        count = len(x)
        query, key, value = (self._heads_of(x, f"{block}.attn_{part}") for part in "qkv")
        query, key = self._rotate(query), self._rotate(key)
        group = self._heads // self._kv_heads
        key, value = np.repeat(key, group, axis=0), np.repeat(value, group, axis=0)
        scores = (query @ key.swapaxes(1, 2)).astype(np.float64) / np.sqrt(query.shape[-1])
        scores[:, np.triu(np.ones((count, count), dtype=bool), k=1)] = -np.inf
        weighted = np.exp(log_softmax(scores)).astype(np.float32) @ value
        return weighted.swapaxes(0, 1).reshape(count, -1) @ self._weights[f"{block}.attn_output"].T

    def _heads_of(self, x: Array, name: str) -> Array:
        """(heads, tokens, head size)."""
        weight = self._weights[name]
        heads = self._heads if name.endswith("q") else self._kv_heads
        return (x @ weight.T).reshape(len(x), heads, -1).swapaxes(0, 1)

    def _rotate(self, x: Array) -> Array:
        size = x.shape[-1]
        angle = np.outer(np.arange(x.shape[1]), self._base ** (-np.arange(0, size, 2) / size))
        turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
        return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape).astype(np.float32)


def log_softmax(values: Array) -> Array:
    shifted = values.astype(np.float64) - values.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def divergence(reference: Array, other: Array) -> Array:
    """Kullback–Leibler divergence of ``other`` from ``reference`` per row, in nats; both are log probabilities."""
    return np.sum(np.exp(reference) * (reference - other), axis=-1)
