"""GGUF's tokenizer as the ``tokenizer.json`` and ``tokenizer_config.json`` that the rest of the field reads.

Only byte-level BPE (``gpt2``) with a pre-tokenizer of the table below can be written so that it encodes as the model
was trained; any other is refused by name, with ``TokenizerError``. Control tokens become special added tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeguard.errors import TokenizerError
from edgeguard.model.gguf_source import TokenizerData

_CONTROL, _USER_DEFINED = 3, 4  # llama_token_type in ggml's llama.h

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}

# GGUF's name of a pre-tokenizer (LLAMA_VOCAB_PRE_TYPE_* in llama.cpp) to what splits the same way.
_PRE_TOKENIZERS: dict[str, list[dict[str, Any]]] = {
    "smollm": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL],
}


def tokenizer_json(data: TokenizerData, *, path: Path) -> dict[str, Any]:
    """The content of ``tokenizer.json``; ``path`` is the source, for messages."""
    if data.kind != "gpt2" or data.pre_tokenizer not in _PRE_TOKENIZERS:
        raise TokenizerError(
            f"{path}: tokenizer {data.kind!r} with pre-tokenizer {data.pre_tokenizer!r} cannot be converted; "
            f"supported is 'gpt2' with {', '.join(map(repr, _PRE_TOKENIZERS))}"
        )
    if data.add_bos:
        raise TokenizerError(f"{path}: tokenizer.ggml.add_bos_token = True is not supported for this tokenizer")
    vocabulary = {token: number for number, token in enumerate(data.tokens)}
    if len(vocabulary) != len(data.tokens) or len(data.types) != len(data.tokens):
        raise TokenizerError(
            f"{path}: tokens that occur twice, or {len(data.types)} types for {len(data.tokens)} tokens"
        )
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": kind == _CONTROL,
            }
            for number, (token, kind) in enumerate(zip(data.tokens, data.types, strict=True))
            if kind in (_CONTROL, _USER_DEFINED)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _PRE_TOKENIZERS[data.pre_tokenizer]},
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": list(data.merges),
        },
    }


def tokenizer_config_json(data: TokenizerData, *, context: int) -> dict[str, Any]:
    """The content of ``tokenizer_config.json``: the chat template and the names of the special tokens."""
    roles = {"bos_token": data.bos, "eos_token": data.eos, "unk_token": data.unknown, "pad_token": data.padding}
    config: dict[str, Any] = {
        "tokenizer_class": "GPT2Tokenizer",
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
    }
    config |= {role: data.tokens[number] for role, number in roles.items() if number is not None}
    if data.chat_template is not None:
        config["chat_template"] = data.chat_template
    return config
