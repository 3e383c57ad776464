"""The ``genai_config.json`` of a folder: how onnxruntime-genai, and the engine, find inputs, outputs and sizes.

The keys are onnxruntime-genai's (src/config.h); a token id the source does not name is left out.
"""

from __future__ import annotations

from typing import Any

from edgeguard.model.gguf_source import Hyperparameters, TokenizerData
from edgeguard.model.onnx_file import GRAPH_NAME


def genai_config(*, hyper: Hyperparameters, tokenizer: TokenizerData, shared_cache: bool) -> dict[str, Any]:
    """The content of ``genai_config.json`` for a graph of ``graph.write_graph``."""
    token_ids = {"bos_token_id": tokenizer.bos, "eos_token_id": tokenizer.eos, "pad_token_id": tokenizer.padding}
    return {
        "model": {
            "type": "llama",
            "context_length": hyper.context,
            "vocab_size": hyper.vocabulary,
            **{key: number for key, number in token_ids.items() if number is not None},
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": GRAPH_NAME,
                "head_size": hyper.head_size,
                "hidden_size": hyper.hidden,
                "num_attention_heads": hyper.heads,
                "num_hidden_layers": hyper.layers,
                "num_key_value_heads": hyper.kv_heads,
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
            },
        },
        "search": {"do_sample": False, "max_length": hyper.context, "past_present_share_buffer": shared_cache},
    }
