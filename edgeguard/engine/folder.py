"""A model's folder, read and checked before anything is opened: sizes, names, chat template, digests.

The layout is onnxruntime-genai's: ``genai_config.json``, ``model.onnx`` (with external data), ``tokenizer.json``,
``tokenizer_config.json``. A folder built here also has a ``manifest.json``; then every file must be the one that was
built. Sizes are in tokens and elements. Knows nothing of sessions; tokens are ``edgeguard.engine.tokens``' business.

Raises ``ModelError`` naming the file and the key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeguard.engine.graph_file import GraphFile, read_graph_file
from edgeguard.errors import ModelError

_BUILD_AGAIN = "build the model again"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the graph calls its inputs and outputs; those of the cache have ``%d`` for the layer."""

    input_ids: str
    attention_mask: str
    logits: str
    past: tuple[str, str]
    present: tuple[str, str]

    def cache(self, *, layers: int) -> list[tuple[str, str]]:
        """(past, present) of every layer's keys and values."""
        pairs = list(zip(self.past, self.present, strict=True))
        return [(past % layer, present % layer) for layer in range(layers) for past, present in pairs]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """Everything the engine wants to know. ``special`` are the token texts that a chat template may name."""

    path: Path
    graph: GraphFile
    names: Names
    layers: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int
    end_tokens: tuple[int, ...]
    tokenizer: Path
    chat_template: str
    special: Mapping[str, str]
    model_digest: str
    tokenizer_digest: str


def read_model_folder(path: Path) -> ModelFolder:
    """Read the folder and check every file against the manifest, if it has one."""
    if not path.is_dir():
        raise ModelError(f"{path}: there is no model folder; make one with 'edgeguard model build'")
    config = _Json(file=path / "genai_config.json", content=_read_json(path / "genai_config.json"))
    if config.get("search.past_present_share_buffer", bool) is not True:
        raise ModelError(
            f"{config.file}: search.past_present_share_buffer is not true, so that its cache would grow by copies; "
            "build the model with GroupQueryAttention"
        )
    graph = read_graph_file(path / config.get("model.decoder.filename", str))
    tokenizer = path / "tokenizer.json"
    tokenizer_config = _read_json(path / "tokenizer_config.json")
    hashes = _hash_files(path, [graph.path.name, *graph.external, config.file.name, tokenizer.name])
    template = _read_chat_template(path, tokenizer_config)
    return ModelFolder(
        path=path,
        graph=graph,
        names=_read_names(config),
        layers=config.size("model.decoder.num_hidden_layers"),
        kv_heads=config.size("model.decoder.num_key_value_heads"),
        head_size=config.size("model.decoder.head_size"),
        vocabulary=config.size("model.vocab_size"),
        context=config.size("model.context_length"),
        end_tokens=_read_end_tokens(config),
        tokenizer=tokenizer,
        chat_template=template,
        special=_read_special(tokenizer_config),
        model_digest=_digest(hashes[name] for name in sorted(hashes) if name != tokenizer.name),
        tokenizer_digest=_digest([hashes[tokenizer.name], template]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Json:
    """A JSON object and the file it came from, for messages."""

    file: Path
    content: Mapping[str, Any]

    def get(self, key: str, kind: type) -> Any:
        value: Any = self.content
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if not isinstance(value, kind):
            raise ModelError(f"{self.file}: {key} is {value!r}, not of type {kind.__name__}; {_BUILD_AGAIN}")
        return value

    def size(self, key: str) -> int:
        value = self.get(key, int)
        if isinstance(value, bool) or value < 1:
            raise ModelError(f"{self.file}: {key} is {value!r}, not a size; {_BUILD_AGAIN}")
        return int(value)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise ModelError(f"{file}: cannot be read ({error.strerror}); {_BUILD_AGAIN}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file}: is not JSON ({error}); {_BUILD_AGAIN}") from error
    if not isinstance(content, dict):
        raise ModelError(f"{file}: is not a JSON object; {_BUILD_AGAIN}")
    return content


def _read_names(config: _Json) -> Names:
    inputs, outputs = "model.decoder.inputs", "model.decoder.outputs"
    names = Names(
        input_ids=config.get(f"{inputs}.input_ids", str),
        attention_mask=config.get(f"{inputs}.attention_mask", str),
        logits=config.get(f"{outputs}.logits", str),
        past=(config.get(f"{inputs}.past_key_names", str), config.get(f"{inputs}.past_value_names", str)),
        present=(config.get(f"{outputs}.present_key_names", str), config.get(f"{outputs}.present_value_names", str)),
    )
    for name in (*names.past, *names.present):
        if name.count("%") != 1 or "%d" not in name:
            raise ModelError(f"{config.file}: {name!r} has no place %d for the layer; {_BUILD_AGAIN}")
    return names


def _read_end_tokens(config: _Json) -> tuple[int, ...]:
    """One id or several; a model that never ends is none that was made to answer."""
    value = config.get("model.eos_token_id", object)
    ids = value if isinstance(value, list) else [value]
    if not ids or not all(isinstance(one, int) and not isinstance(one, bool) for one in ids):
        raise ModelError(f"{config.file}: model.eos_token_id is {value!r}, not a token or a list; {_BUILD_AGAIN}")
    return tuple(ids)


def _read_chat_template(path: Path, tokenizer_config: Mapping[str, Any]) -> str:
    """From ``chat_template.jinja`` as newer tools write it, else from ``tokenizer_config.json``."""
    file = path / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = tokenizer_config.get("chat_template")
    if isinstance(template, list):  # several, by name
        template = next((one.get("template") for one in template if one.get("name") == "default"), None)
    if not isinstance(template, str):
        raise ModelError(
            f"{path / 'tokenizer_config.json'}: has no chat_template; take an instruction-tuned variant of the model"
        )
    return template


def _read_special(tokenizer_config: Mapping[str, Any]) -> dict[str, str]:
    special = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = tokenizer_config.get(name)
        text = value.get("content") if isinstance(value, Mapping) else value
        if isinstance(text, str):
            special[name] = text
    return special


def _hash_files(path: Path, names: list[str]) -> dict[str, str]:
    """SHA-256 of each named file; those of the manifest must be what it says."""
    manifest = path / "manifest.json"
    expected = _Json(file=manifest, content=_read_json(manifest)).get("files", dict) if manifest.is_file() else {}
    hashes = {name: _sha256(path / name) for name in dict.fromkeys([*names, *expected])}
    for name, entry in expected.items():
        if not isinstance(entry, Mapping) or hashes[name] != entry.get("sha256"):
            raise ModelError(f"{path / name}: is damaged, or was changed since {manifest.name}; {_BUILD_AGAIN}")
    return {name: hashes[name] for name in names}


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as content:
            while chunk := content.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read ({error.strerror}); {_BUILD_AGAIN}") from error
    return digest.hexdigest()


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
