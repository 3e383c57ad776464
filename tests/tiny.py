"""A tiny model of the real kind, for every test that needs one: seeded, built in about a second, a few hundred kB.

``tiny_model`` writes a GGUF file of the llama architecture (2 layers, hidden 64, a few hundred tokens of byte-level BPE
with control tokens and a chat template) and builds it as any other recipe. Its weights are random, so its answers
mean nothing, but every operator, cache and token path is the real one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from edgeguard.model.build import build
from edgeguard.model.options import GraphOptions, Logits
from edgeguard.model.recipe import PathSource, Recipe

LAYERS, HIDDEN, FEED_FORWARD, HEADS, KV_HEADS, CONTEXT = 2, 64, 128, 4, 2, 512
CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
VOCABULARY = 360
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_CORPUS = (
    "the robot turns left and right, forward and back; stop when the range is short.",
    '{"action": "forward", "speed": 0.4, "turn": -0.25, "reason": "clear"}',
    "user system assistant operator says: go slowly to the door, then wait 10 seconds 1 2 3 4 5 6 7 8 9 0",
)


def tiny_model(
    folder: Path,
    *,
    seed: int = 0,
    weight_type: str = "Q4_1",
    embedding_type: str = "Q8_0",
    head_type: str | None = None,
    other_types: Mapping[str, str] = MappingProxyType({}),
    layers: int = LAYERS,
    accuracy_level: int = 4,
    logits: str = "last",
    adapter: Path | None = None,
    **options: Any,
) -> Path:
    """Build the tiny model under ``folder`` and return the model's folder; the arguments are ``write_tiny_gguf``'s.

    ``options`` are those of ``GraphOptions`` (weights, head, embedding, attention, activations).
    """
    path = folder / "tiny.gguf"
    write_tiny_gguf(
        path,
        seed=seed,
        weight_type=weight_type,
        embedding_type=embedding_type,
        head_type=head_type,
        other_types=other_types,
        layers=layers,
    )
    recipe = tiny_recipe(path, accuracy_level=accuracy_level, logits=logits)
    recipe = replace(recipe, adapter=adapter, build=replace(recipe.build, **options))
    return build(recipe, cache_dir=folder / "cache")


def tiny_recipe(path: Path, *, accuracy_level: int = 4, logits: str = "last") -> Recipe:
    """A recipe for a file of ``write_tiny_gguf``."""
    return Recipe(
        name="tiny",
        summary="random weights",
        licence="Apache-2.0",
        source=PathSource(path=path),
        build=GraphOptions(accuracy_level=accuracy_level, logits=Logits(logits)),
    )


def write_tiny_gguf(
    path: Path,
    *,
    seed: int = 0,
    weight_type: str = "Q4_1",
    embedding_type: str = "Q8_0",
    head_type: str | None = None,
    other_types: Mapping[str, str] = MappingProxyType({}),
    layers: int = LAYERS,
    architecture: str = "llama",
    change: Callable[[gguf.GGUFWriter], None] | None = None,
) -> None:
    """Write the file as llama.cpp's converter would.

    Without a ``head_type`` the head is tied to the embedding; ``other_types`` are exceptions ("attn_v", "ffn_up", ...).
    ``change`` may replace keys and add tensors before the file is written.
    """
    tokens, merges = tiny_vocabulary()
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in CONTROL_TOKENS else 1 for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template(CHAT_TEMPLATE)
    random = np.random.default_rng(seed)

    def add_matrix(name: str, rows: int, columns: int, type_name: str) -> None:
        kind = GGMLQuantizationType[other_types.get(name.rpartition(".")[2], type_name)]
        values = random.normal(0.02, 1.5 / np.sqrt(columns), (rows, columns)).astype(np.float32)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)

    def add_norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", random.uniform(0.5, 1.5, HIDDEN).astype(np.float32))

    kv = KV_HEADS * HIDDEN // HEADS
    add_matrix("token_embd", len(tokens), HIDDEN, embedding_type)
    for layer in range(layers):
        block = f"blk.{layer}"
        add_norm(f"{block}.attn_norm")
        add_matrix(f"{block}.attn_q", HIDDEN, HIDDEN, weight_type)
        add_matrix(f"{block}.attn_k", kv, HIDDEN, weight_type)
        add_matrix(f"{block}.attn_v", kv, HIDDEN, weight_type)
        add_matrix(f"{block}.attn_output", HIDDEN, HIDDEN, weight_type)
        add_norm(f"{block}.ffn_norm")
        add_matrix(f"{block}.ffn_gate", FEED_FORWARD, HIDDEN, weight_type)
        add_matrix(f"{block}.ffn_up", FEED_FORWARD, HIDDEN, weight_type)
        add_matrix(f"{block}.ffn_down", HIDDEN, FEED_FORWARD, weight_type)
    add_norm("output_norm")
    if head_type is not None:
        add_matrix("output", len(tokens), HIDDEN, head_type)
    if change is not None:
        change(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tiny_vocabulary() -> tuple[list[str], list[str]]:
    """Tokens in the order of their ids, and merges as GGUF writes them."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(CONTROL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(trained["vocab"], key=trained["vocab"].__getitem__)
    return tokens, [" ".join(pair) for pair in trained["merges"]]
