"""A model's folder, read and checked before anything is opened: sizes, names, chat template, digests.

What the graph is called and how large it is, its layout says (``edgeguard.engine.layout``); every layout has a
``tokenizer.json`` and a ``tokenizer_config.json``. A folder built here also has a ``manifest.json``; then every file
must be the one that was built. Knows nothing of sessions; tokens are ``edgeguard.engine.tokens``' business.

Raises ``ModelError`` naming the file and the key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from edgeguard.engine.json_file import BUILD_AGAIN, JsonFile
from edgeguard.engine.layout import Layout, read_layout
from edgeguard.errors import ModelError

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder(Layout):
    """Everything the engine wants to know; ``path`` is where the graph and its weights are.

    ``special`` are the token texts that a chat template may name.
    """

    path: Path
    tokenizer: Path
    chat_template: str
    special: Mapping[str, str]
    model_digest: str
    tokenizer_digest: str


def read_model_folder(path: Path) -> ModelFolder:
    """Read the folder (or the one around the ONNX file) and check every file against the manifest, if it has one."""
    layout = read_layout(path)
    folder, graph = layout.config.parent, layout.graph
    tokenizer = folder / "tokenizer.json"
    tokenizer_config = JsonFile.read(folder / "tokenizer_config.json").content
    weights = [graph.path, *(graph.path.parent / name for name in graph.external)]
    hashes = _hash_files(folder, [str(file.relative_to(folder)) for file in (*weights, layout.config, tokenizer)])
    template = _read_chat_template(folder, tokenizer_config)
    return ModelFolder(
        **{one.name: getattr(layout, one.name) for one in fields(layout)},
        path=graph.path.parent,
        tokenizer=tokenizer,
        chat_template=template,
        special=_read_special(tokenizer_config),
        model_digest=_digest(hashes[name] for name in sorted(hashes) if name != tokenizer.name),
        tokenizer_digest=_digest([hashes[tokenizer.name], template]),
    )


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
    expected = JsonFile.read(manifest).get("files", dict) if manifest.is_file() else {}
    hashes = {name: _sha256(path / name) for name in dict.fromkeys([*names, *expected])}
    for name, entry in expected.items():
        if not isinstance(entry, Mapping) or hashes[name] != entry.get("sha256"):
            raise ModelError(f"{path / name}: is damaged, or was changed since {manifest.name}; {BUILD_AGAIN}")
    return {name: hashes[name] for name in names}


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    try:
        with file.open("rb") as content:
            while chunk := content.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read ({error.strerror}); {BUILD_AGAIN}") from error
    return digest.hexdigest()


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
